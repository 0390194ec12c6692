//! Whether a proof fits into the memory that there is, known from the counts of its circuit before its files are looked
//! for or anything of them is read.

use proofkeep_engine::kinds::Desk;
use proofkeep_engine::problem::Problem;
use serde_json::{Map, Value};

use crate::counts::Counts;
use crate::sector::{self, Seal};

/// [`check`] for the sector size that a request's fields name; without one, and with one that is wrong, nothing is said
/// yet.
///
/// # Errors
/// `needs-memory`.
pub fn check_named(kind: &str, fields: &Map<String, Value>, desk: &dyn Desk) -> Result<(), Problem> {
    match named(kind, fields) {
        Some((size, partitions)) => check(kind, size, partitions, desk),
        None => Ok(()),
    }
}

fn named(kind: &str, fields: &Map<String, Value>) -> Option<(u64, Option<u8>)> {
    let mut look: Map<String, Value> = ["registered_proof", "sector_size"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone())))
        .collect();
    let chosen = sector::chosen(&mut look).ok().flatten()?;
    let size = match kind {
        "porep-c2" => Seal::of(&chosen).ok()?.size,
        "snap-update" => sector::update_size(&chosen).ok()?,
        kind => sector::post_config(&chosen, kind == "winning-post")
            .ok()?
            .sector_size
            .into(),
    };
    let partitions = fields.get("partitions").and_then(Value::as_u64);
    Some((size, partitions.and_then(|count| u8::try_from(count).ok())))
}

/// Refuses a proof of which a partition takes more memory than there is; `partitions` is what a PoRep asks for.
///
/// # Errors
/// `needs-memory`, with both numbers.
pub fn check(kind: &str, size: u64, partitions: Option<u8>, desk: &dyn Desk) -> Result<(), Problem> {
    let counts = Counts::known(kind, size, partitions);
    let needed = counts.map_or(0, |counts| counts.ticket_bytes(desk.threads() as usize));
    let available = desk.memory_bytes();
    if needed <= available {
        return Ok(());
    }
    let detail = format!(
        "a partition of {kind} of {} sectors needs {needed} bytes of memory, its key among them, and the budget is \
         {available} bytes; give proofkeep more memory, or prove it on a larger machine",
        sector::size_name(size)
    );
    Err(Problem::input("needs-memory", detail)
        .with("field", "registered_proof".into())
        .with(
            "expected",
            format!("a proof that takes at most {available} bytes").into(),
        )
        .with("found", format!("one that takes {needed}").into())
        .with("needed_bytes", needed.into())
        .with("available_bytes", available.into()))
}
