//! What every job needs: the sequences, the boots, the counters. They have no second source that is quick to read, and none
//! that holds for pruned jobs, so damage there is the end of a start.

use std::path::Path;

use crate::codec::{self, Record as _};
use crate::error::OpenError;
use crate::keys::{self, Family, Key, Sequence};
use crate::records::Boot;
use crate::view::{ReadError, View, for_each};

/// Refuses a store in which one of them is damaged or gone.
pub(super) fn check(path: &Path, view: &dyn View) -> Result<(), OpenError> {
    let unreadable = |source: ReadError| OpenError::Record {
        path: path.to_path_buf(),
        source,
    };
    let needed = |key: &[u8], what: String| OpenError::Needed {
        path: path.to_path_buf(),
        place: crate::fsck::describe(key),
        what,
    };
    for family in [Family::Counter, Family::PrunedCounter] {
        for_each(view, &keys::family(family), |key, value| {
            codec::read_number(value)
                .map(drop)
                .map_err(|damage| ReadError::damaged(key, damage))
        })
        .map_err(unreadable)?;
    }
    for_each(view, &keys::family(Family::Boot), |key, value| {
        Boot::decode(value)
            .map(drop)
            .map_err(|damage| ReadError::damaged(key, damage))
    })
    .map_err(unreadable)?;
    for (sequence, family) in [
        (Sequence::Boot, Family::Boot),
        (Sequence::Job, Family::Job),
        (Sequence::Job, Family::JobEvent),
        (Sequence::Journal, Family::Event),
    ] {
        let key = keys::sequence(sequence);
        let said = crate::query::number_at(view, &key)
            .map_err(unreadable)?
            .unwrap_or(0);
        let there = last_in(view, family).map_err(unreadable)?;
        if there > said {
            let what = format!("it says {said}, and there is a record of number {there}");
            return Err(needed(&key, what));
        }
        if sequence == Sequence::Boot && there < said {
            return Err(needed(
                &keys::boot(crate::ids::BootNumber(said)),
                "it is gone".to_owned(),
            ));
        }
    }
    Ok(())
}

/// The number at the front of a family's last key; 0 in an empty one.
fn last_in(view: &dyn View, family: Family) -> Result<u64, ReadError> {
    let last: Option<(Key, Vec<u8>)> = view.scan_back(&keys::family(family), None, 1)?.pop();
    Ok(last
        .and_then(|(key, _)| keys::parse_job(&key))
        .map_or(0, |job| job.0))
}
