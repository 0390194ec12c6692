//! `fsck`: every invariant of a data directory.

use clap::Args;
use proofkeep_formats::count;
use proofkeep_store::fsck::{Checked, Mode, fsck};
use serde_json::json;

use super::data::{DataDir, refused};
use super::exit::{CliError, Exit};
use super::out::Out;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep fsck --data-dir ./data\n\nExits with 1 if anything is wrong, or is still wrong after --repair."
)]
pub struct Fsck {
    #[command(flatten)]
    data: DataDir,
    /// Look only at what is live: jobs that haven't ended, queues, leases, devices
    #[arg(long)]
    live: bool,
    /// First put back what the journal still says: damaged or lost records of jobs and circuits, and indexes
    #[arg(long)]
    repair: bool,
    /// Leave out the bytes of large objects, such as keys
    #[arg(long)]
    no_objects: bool,
}

pub fn run(command: &Fsck, out: &Out) -> Result<Exit, CliError> {
    let store = command
        .data
        .open("use proofkeep status while it runs, or stop it first")?;
    let mut put_back = Vec::new();
    if command.repair {
        let mended = store
            .mend_all()
            .map_err(|error| refused(error, &command.data.path(), ""))?;
        put_back = mended.mended.iter().map(ToString::to_string).collect();
    }
    let mode = if command.live { Mode::Live } else { Mode::Full };
    let object_ok = |digest| store.objects().verify(digest).is_ok();
    let objects = (!command.no_objects).then_some(&object_ok as proofkeep_store::fsck::ObjectCheck<'_>);
    let report = store
        .read(|view| fsck(view, mode, objects))
        .map_err(|error| CliError::failed("unreadable", error.to_string()))?;
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "invariant": finding.invariant.name(), "place": finding.place, "key": finding.key, "text": finding.text,
            })
        })
        .collect();
    let Checked {
        records,
        jobs,
        partitions,
        attempts,
        events,
        objects,
    } = report.checked;
    let value = json!({
        "clean": report.is_clean(), "findings": findings, "more": report.more, "put_back": put_back,
        "checked": {
            "records": records, "jobs": jobs, "partitions": partitions, "attempts": attempts, "events": events,
            "objects": objects,
        },
    });
    out.data(&value, || {
        let mut lines: Vec<String> = put_back.iter().map(|what| format!("put back: {what}")).collect();
        lines.extend(report.findings.iter().map(ToString::to_string));
        if report.more > 0 {
            lines.push(format!("and {} more", report.more));
        }
        let verdict = if report.is_clean() { "clean" } else { "NOT clean" };
        lines.push(format!(
            "{verdict}: {}, {}, {}, {}, {} replayed, {}",
            count(records, "record"),
            count(jobs, "job"),
            count(partitions, "partition"),
            count(attempts, "attempt"),
            count(events, "event"),
            count(objects, "object")
        ));
        lines.join("\n")
    });
    Ok(if report.is_clean() {
        Exit::Done
    } else {
        Exit::Failed
    })
}
