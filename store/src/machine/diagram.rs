//! The diagrams in `ARCHITECTURE.md`, drawn from the [table](super::table) in Mermaid's words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::CommandName;
use super::table::{JOB, Outcome, PARTITION};

/// Where a diagram begins and ends.
const OUTSIDE: &str = "[*]";

/// What stands between the markers of `ARCHITECTURE.md`: both diagrams.
#[must_use]
pub fn section() -> String {
    format!(
        "A job:\n\n```mermaid\n{}```\n\nA partition of a job:\n\n```mermaid\n{}```\n",
        jobs(),
        partitions()
    )
}

/// The states of a job and the commands that move it. `stopping` is drawn once, whatever it leads to.
#[must_use]
pub fn jobs() -> String {
    draw(
        JOB.iter().flat_map(|cell| {
            let moves = cell.outcomes.iter().copied();
            moves.filter_map(|outcome| {
                edge(outcome, |to| to.name()).map(|to| (cell.from.name(), to, cell.command))
            })
        }),
        "queued",
    )
}

/// The states of a partition and the commands that move it, whatever its job does.
#[must_use]
pub fn partitions() -> String {
    draw(
        PARTITION.iter().flat_map(|cell| {
            let moves = cell.outcomes.iter().copied();
            moves.filter_map(|outcome| {
                edge(outcome, |to| to.name()).map(|to| (cell.from.1.name(), to, cell.command))
            })
        }),
        "ready",
    )
}

fn edge<S>(outcome: Outcome<S>, name: impl Fn(S) -> &'static str) -> Option<&'static str> {
    match outcome {
        Outcome::To(state) => Some(name(state)),
        Outcome::Gone => Some(OUTSIDE),
        Outcome::Stays | Outcome::Unchanged | Outcome::Stale | Outcome::Refused => None,
    }
}

fn draw(
    moves: impl Iterator<Item = (&'static str, &'static str, CommandName)>,
    first: &'static str,
) -> String {
    // In the order of the table, each edge once.
    let mut order = vec![(OUTSIDE, first)];
    let mut labels: BTreeMap<_, BTreeSet<CommandName>> = BTreeMap::new();
    labels
        .entry((OUTSIDE, first))
        .or_default()
        .insert(CommandName::Submit);
    for (from, to, command) in moves {
        if !order.contains(&(from, to)) {
            order.push((from, to));
        }
        labels.entry((from, to)).or_default().insert(command);
    }
    let mut text = String::from("stateDiagram-v2\n");
    for edge in order {
        let commands: Vec<&str> = labels
            .get(&edge)
            .into_iter()
            .flatten()
            .map(|name| name.name())
            .collect();
        // Writing into a string has no way to fail.
        let _ = writeln!(text, "    {} --> {}: {}", edge.0, edge.1, commands.join(", "));
    }
    text
}
