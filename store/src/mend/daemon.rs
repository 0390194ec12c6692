//! What belongs to no job, made again from the events of no job: circuits, their names, their imports, the queue.

use super::journal::Journal;
use super::{Changes, differences, job};
use crate::codec::Record as _;
use crate::keys::{self, Family};
use crate::records::{Lease, Subject};
use crate::view::{ReadError, View, for_each};

/// What is to be written so that they are what the journal says; or why that can't be known. Devices and workers are made
/// anew by every boot; the boots themselves are what every job needs.
pub(super) fn changes(view: &dyn View, journal: &Journal) -> Result<Result<Changes, String>, ReadError> {
    let numbers = match journal.of(None) {
        Ok(numbers) => numbers,
        Err(why) => return Ok(Err(why)),
    };
    let told = match job::replay(view, numbers)? {
        Ok(told) => told,
        Err(why) => return Ok(Err(why)),
    };
    let mut changes = Changes::new();
    for family in [
        Family::Circuit,
        Family::CircuitName,
        Family::Importing,
        Family::Queue,
    ] {
        differences(&told, view, &keys::family(family), &mut changes)?;
    }
    // Leases of imports, and the circuits' own objects: of what is there, only what is known to be theirs is looked at.
    for family in [Family::Lease, Family::Reference] {
        for_each(&told, &keys::family(family), |key, value| {
            if view.get(key)?.as_deref() != Some(value) {
                changes.insert(key.to_vec(), Some(value.to_vec()));
            }
            Ok(())
        })?;
    }
    for_each(view, &keys::family(Family::Lease), |key, value| {
        let import = Lease::decode(value).is_ok_and(|lease| matches!(lease.subject, Subject::Import { .. }));
        if import && told.get(key)?.is_none() {
            changes.insert(key.to_vec(), None);
        }
        Ok(())
    })?;
    Ok(Ok(changes))
}
