//! What a backup or an export came to, as HTTP and the command line say it.

use std::path::Path;

use proofkeep_store::dump::Dumped;
use serde_json::{Value, json};

use super::time;

/// Draws it.
pub(crate) fn draw(dumped: &Dumped, target: &Path) -> Value {
    let missing: Vec<String> = dumped.missing.iter().map(ToString::to_string).collect();
    json!({
        "target": target.display().to_string(), "store": dumped.store, "at": time::write(dumped.at),
        "began": dumped.began.0, "journal": dumped.journal.0,
        "records": dumped.counts.records, "deletions": dumped.counts.deletions,
        "objects": dumped.counts.objects, "object_bytes": dumped.counts.object_bytes,
        "missing": missing, "bytes": dumped.bytes, "sha256": dumped.sha256.hex(),
    })
}

/// The same in a line, and what is wrong with it in others.
pub(crate) fn text(value: &Value) -> String {
    format!(
        "{}: the store as of journal entry {}, {} records, {} objects ({} bytes)",
        value["target"].as_str().unwrap_or_default(),
        value["journal"],
        value["records"],
        value["objects"],
        value["object_bytes"]
    )
}

/// What is missing in the store itself, for whoever watches.
pub(crate) fn warning(value: &Value) -> Option<String> {
    let missing = value["missing"]
        .as_array()
        .filter(|missing| !missing.is_empty())?;
    let names: Vec<&str> = missing.iter().take(5).filter_map(Value::as_str).collect();
    let more = if missing.len() > names.len() { ", …" } else { "" };
    Some(format!(
        "warning: the store itself has lost these objects, or has them damaged: {}{more}; run `proofkeep fsck` on its \
         data directory",
        names.join(", ")
    ))
}
