//! `history`: boots, jobs and the journal of a data directory.

use clap::Args;
use proofkeep_formats::count;
use proofkeep_store::Store;
use proofkeep_store::clock::Clock;
use proofkeep_store::event::Event;
use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber};
use proofkeep_store::query::{self, BootReport, Found};
use proofkeep_store::records::BootEnd;
use proofkeep_store::view::ReadError;
use serde_json::{Value, json};
use uuid::Uuid;

use super::data::DataDir;
use super::exit::{CliError, Exit};
use super::out::Out;
use crate::render::job::JobView;
use crate::render::{event, time};

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep history --data-dir ./data --events\n\n\
                  With --json each line is {\"boot\": …}, {\"job\": …} or {\"event\": …}.")]
pub struct History {
    #[command(flatten)]
    data: DataDir,
    /// Only this job, with its events
    #[arg(long, value_name = "ID")]
    job: Option<Uuid>,
    /// The events of everything too
    #[arg(long)]
    events: bool,
}

/// What is read under the store's lock at once.
const PAGE: usize = 256;

pub fn run(command: &History, out: &Out) -> Result<Exit, CliError> {
    let store = command
        .data
        .open("use proofkeep ls, show and events while it runs, or stop it first")?;
    show(&store, command, out)
}

fn show(store: &Store, command: &History, out: &Out) -> Result<Exit, CliError> {
    if let Some(id) = command.job {
        let number = match store.read(|view| query::find(view, id)).map_err(unreadable)? {
            Found::Job(number) => number,
            Found::Pruned(at) => {
                let detail = format!("job {id} was pruned at {}", time::write(at));
                return Err(CliError::failed("pruned", detail));
            }
            Found::Unknown => {
                return Err(CliError::failed(
                    "unknown-job",
                    format!("there is no job {id} here"),
                ));
            }
        };
        show_job(store, number, out)?;
        show_events(out, |after| {
            store.read(|view| query::job_events(view, number, after, PAGE))
        })?;
        return Ok(Exit::Done);
    }
    for number in 1..=store.read(query::last_boot).map_err(unreadable)?.0 {
        let report = store.read(|view| query::boot_report(view, BootNumber(number)));
        if let Some(report) = report.map_err(unreadable)? {
            show_boot(&report, out);
        }
    }
    let last = store.read(query::last_job).map_err(unreadable)?;
    for number in 1..=last.0 {
        show_job(store, JobNumber(number), out)?;
    }
    if command.events {
        show_events(out, |after| store.read(|view| query::events(view, after, PAGE)))?;
    }
    Ok(Exit::Done)
}

fn show_boot(report: &BootReport, out: &Out) {
    let (boot, recovered) = (&report.boot, &report.recovered);
    let ended = boot.ended.map(|(at, end)| (time::write(at), end_name(end)));
    let value = json!({ "boot": {
        "number": boot.number.0, "version": boot.version, "started_at": time::write(boot.started_at),
        "ended_at": ended.as_ref().map(|(at, _)| at), "end": ended.as_ref().map(|(_, end)| end),
        "interrupted": recovered.interrupted, "partitions_kept": recovered.partitions_kept,
        "checkpoints_reused": recovered.checkpoints_reused, "saved_ms": recovered.saved_ms,
    }});
    out.data(&value, || {
        let end = ended
            .as_ref()
            .map_or_else(String::new, |(at, end)| format!(", {end} {at}"));
        let kept = if recovered.interrupted == 0 {
            String::new()
        } else {
            format!(
                "; closed {} of the boot before, kept {}, reused {} ({} ms)",
                count(recovered.interrupted, "attempt"),
                count(recovered.partitions_kept, "proved partition"),
                count(recovered.checkpoints_reused, "checkpoint"),
                recovered.saved_ms
            )
        };
        format!(
            "boot {} {} proofkeep {}{end}{kept}",
            boot.number,
            time::write(boot.started_at),
            boot.version
        )
    });
}

fn end_name(end: BootEnd) -> &'static str {
    match end {
        BootEnd::Clean => "ended clean",
        BootEnd::Crashed => "crashed",
    }
}

fn show_job(store: &Store, number: JobNumber, out: &Out) -> Result<(), CliError> {
    let Some(job) = store
        .read(|view| JobView::read(view, number))
        .map_err(unreadable)?
    else {
        return Ok(());
    };
    let job = job.draw(Clock::start().now(), None);
    out.data(&json!({ "job": job }), || super::show::text(&job));
    Ok(())
}

fn show_events(
    out: &Out,
    page: impl Fn(JournalNumber) -> Result<query::EventPage, ReadError>,
) -> Result<(), CliError> {
    let mut after = JournalNumber(0);
    loop {
        let found = page(after).map_err(unreadable)?;
        for event in &found.events {
            let value = with_job(event);
            out.data(&json!({ "event": value }), || super::events::text(&value));
        }
        match found.next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}

fn with_job(event: &Event) -> Value {
    let mut value = event::draw(event);
    if let (Some(job), Some(members)) = (event.job, value.as_object_mut()) {
        members.insert("job".to_owned(), job.0.into());
    }
    value
}

fn unreadable(error: ReadError) -> CliError {
    CliError::failed("unreadable", error.to_string())
}
