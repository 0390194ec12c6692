//! Every state, every command, against the table; and the table against the drawn diagrams.
//!
//! States are reached by commands alone, from an empty store. In each of them every command is tried in all its variants:
//! the lease it names is the partition's own, current or last; every failure class; before and after the deadline.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../common/mod.rs"]
mod common;

mod situations;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::Millis;
use proofkeep_store::keys;
use proofkeep_store::machine::table::{self, ELSEWHERE, Outcome, PARTITION_STATES, Phase};
use proofkeep_store::machine::{Command, CommandName, Reply, diagram};
use proofkeep_store::records::{Job, JobState, Partition, PartitionState};
use proofkeep_store::view::record;
use situations::{Situation, ended, going, stopping, verifying};
use variants::variants;

fn outcome<S: PartialEq + Copy>(reply: &Reply, before: S, after: Option<S>) -> Outcome<S> {
    match (reply, after) {
        (_, None) => Outcome::Gone,
        (_, Some(after)) if after != before => Outcome::To(after),
        (Reply::Stale, _) => Outcome::Stale,
        (Reply::Unchanged, _) => Outcome::Unchanged,
        _ => Outcome::Stays,
    }
}

type Seen<K, S> = BTreeMap<(K, CommandName), BTreeSet<Outcome<S>>>;

#[derive(Default)]
struct Observed {
    jobs: Seen<JobState, JobState>,
    partitions: Seen<(Phase, PartitionState), PartitionState>,
}

impl Observed {
    /// Tries one variant on a copy of the situation and notes what came of it.
    fn try_one(&mut self, situation: &Situation, target: Option<u32>, now: Millis, command: &Command) {
        let Situation { world, job, .. } = situation;
        let name = command.name();
        let mut context = world.context();
        context.now = now;
        if name == CommandName::BootOpen {
            context.boot.0 += 1;
        }
        let before = world.job(*job);
        let count = before.partitions;
        let partitions = target.map_or(0..count, |index| index..index + 1);
        let mut note = |reply: Option<&Reply>, after: &proofkeep_store::view::MemoryView| {
            let job_after = record::<Job>(after, &keys::job(*job)).unwrap();
            let came = reply.map_or(Outcome::Refused, |reply| {
                outcome(reply, before.state, job_after.as_ref().map(|job| job.state))
            });
            self.jobs.entry((before.state, name)).or_default().insert(came);
            for index in partitions.clone() {
                let state = world.state(*job, index);
                // A pruned job's partitions go in slices; the job itself goes at once.
                let there = job_after.is_some();
                let partition = record::<Partition>(after, &keys::partition(*job, index)).unwrap();
                let came = reply.map_or(Outcome::Refused, |reply| {
                    outcome(
                        reply,
                        state,
                        partition.filter(|_| there).map(|partition| partition.state),
                    )
                });
                self.partitions
                    .entry(((Phase::of(before.state), state), name))
                    .or_default()
                    .insert(came);
            }
        };
        match world.machine.step(&world.view, context, command) {
            Err(proofkeep_store::machine::StepError::Refused(_)) => note(None, &world.view),
            Err(error) => panic!("{}: {command:?}: {error}", situation.name),
            Ok(step) => {
                let mut after = world.view.clone();
                after.apply(&step.changes);
                let reply = match step.reply {
                    Reply::Submitted { .. } if step.changes.is_empty() => Reply::Unchanged,
                    reply => reply,
                };
                note(Some(&reply), &after);
                let report =
                    proofkeep_store::fsck::fsck(&after, proofkeep_store::fsck::Mode::Full, None).unwrap();
                assert!(
                    report.is_clean(),
                    "{}: {command:?}: {:?}",
                    situation.name,
                    report.findings
                );
            }
        }
    }
}

#[test]
fn every_command_in_every_state_does_what_the_table_says_and_nothing_else() {
    let mut observed = Observed::default();
    let situations = [going(), verifying(), stopping(), ended()].into_iter().flatten();
    for situation in situations {
        for name in CommandName::ALL {
            for (target, now, command) in variants(&situation, *name) {
                assert_eq!(command.name(), *name);
                if ELSEWHERE.contains(name) {
                    touches_no_job(&situation, &command);
                } else {
                    observed.try_one(&situation, target, now, &command);
                }
            }
        }
    }
    let mut wrong = Vec::new();
    for state in JobState::ALL {
        for name in CommandName::ALL {
            let told = table::job(state, *name).map(|told| told.iter().copied().collect());
            let seen = observed.jobs.get(&(state, *name)).cloned();
            if told != seen {
                wrong.push(format!(
                    "job {state:?}, {}: table {told:?}, machine {seen:?}",
                    name.name()
                ));
            }
        }
    }
    for (phase, state) in PARTITION_STATES {
        for name in CommandName::ALL {
            let told = table::partition(*phase, *state, *name).map(|told| told.iter().copied().collect());
            let seen = observed.partitions.get(&((*phase, *state), *name)).cloned();
            if told != seen {
                wrong.push(format!(
                    "partition {phase:?}/{state:?}, {}: table {told:?}, machine {seen:?}",
                    name.name()
                ));
            }
        }
    }
    for (state, _) in observed.partitions.keys() {
        if !PARTITION_STATES.contains(state) {
            wrong.push(format!("{state:?} is not in the table"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cells differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn touches_no_job(situation: &Situation, command: &Command) {
    let Situation { world, job, .. } = situation;
    let Ok(step) = world.machine.step(&world.view, world.context(), command) else {
        return;
    };
    for key in step.changes.keys() {
        let of_job = keys::parse_job(key) == Some(*job);
        let family = keys::Family::Job as u8..=keys::Family::Needs as u8;
        assert!(
            !(of_job && family.contains(&key[0])),
            "{}: {command:?} writes {key:?}",
            situation.name
        );
    }
}

/// The table is a table: no cell twice, none for a command that is elsewhere, none that says what the default says.
#[test]
fn the_table_says_everything_once() {
    let mut seen = BTreeSet::new();
    for cell in table::JOB {
        assert!(
            seen.insert((format!("{:?}", cell.from), cell.command)),
            "{cell:?} is there twice"
        );
        assert!(!ELSEWHERE.contains(&cell.command), "{cell:?} is elsewhere");
    }
    for cell in table::PARTITION {
        assert!(
            seen.insert((format!("{:?}", cell.from), cell.command)),
            "{cell:?} is there twice"
        );
        assert!(!ELSEWHERE.contains(&cell.command), "{cell:?} is elsewhere");
        assert!(
            PARTITION_STATES.contains(&cell.from),
            "{cell:?} is about no state"
        );
    }
}

/// Set `PROOFKEEP_WRITE_STATES=1` to write the section instead of comparing it.
#[test]
fn the_architecture_page_shows_the_table() {
    const BEGIN: &str = "<!-- states:begin -->\n";
    const END: &str = "<!-- states:end -->";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page
        .split_once(BEGIN)
        .expect("the page marks where the states begin");
    let (found, after) = rest.split_once(END).expect("the page marks where the states end");
    let expected = format!("\n{}\n", diagram::section());
    if std::env::var_os("PROOFKEEP_WRITE_STATES").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert!(
        found == expected,
        "the diagrams differ from the table; run this test with PROOFKEEP_WRITE_STATES=1 and look at the change"
    );
}
