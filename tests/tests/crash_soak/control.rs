//! The other way round: samples of a daemon that leaks, made up, must be called wrong. Else the soak shows nothing.

use super::bounds::{LIMITS, RISES, wrong};
use super::sample::{Sample, Samples};

/// Seconds of the daemon's last life, and jobs that end in each.
const SECONDS: u32 = 120;
const JOBS: f64 = 2.0;

/// Two lives: one with other figures, which must not matter, and one with as much of everything as is usual. `change`
/// is told how far the second one is, from 0 to 1, and what stands in a column.
fn lives(change: impl Fn(&str, f64, f64) -> f64) -> Samples {
    let usual = [
        ("daemon_rss", 60e6),
        ("worker_rss", 90e6),
        ("daemon_fds", 40.0),
        ("worker_fds", 12.0),
        ("daemon_threads", 14.0),
        ("daemon_pools", 20.0),
        ("worker_threads", 8.0),
        ("store_bytes", 20e6),
    ];
    let sample = |second: u32| {
        let (first_life, at) = (second < 20, f64::from(second));
        let share = (at - 20.0).max(0.0) / f64::from(SECONDS);
        let mut columns: Vec<(&str, f64)> = usual
            .iter()
            // Some noise: what is there one second is gone the next.
            .map(|(name, value)| (*name, value * (1.0 + 0.02 * f64::from(second % 3))))
            .map(|(name, value)| {
                (
                    name,
                    if first_life {
                        value / 2.0
                    } else {
                        change(name, share, value)
                    },
                )
            })
            .collect();
        let journal = 50.0 * at;
        columns.push(("jobs_ended", JOBS * at));
        columns.push(("journal", journal));
        columns.push(("journal_kept", change("journal_kept", share, journal.min(3000.0))));
        Sample::made_up(at, if first_life { 1 } else { 2 }, &columns)
    };
    Samples((0..20 + SECONDS).map(sample).collect())
}

#[test]
fn what_leaks_is_noticed_and_what_does_not_is_not() {
    assert_eq!(wrong(&lives(|_, _, value| value)), Vec::<String>::new());
    for (leaking, allowed) in RISES {
        let leak = |name: &str, share: f64, value: f64| {
            value
                + if name == leaking {
                    share * 1.5 * allowed
                } else {
                    0.0
                }
        };
        let found = wrong(&lives(leak));
        assert!(
            found.len() == 1 && found[0].starts_with(leaking) && found[0].contains("rose"),
            "a leak of {leaking} is called {found:?}"
        );
    }
}

#[test]
fn what_is_too_much_for_a_second_is_noticed() {
    for (high, limit) in LIMITS {
        let spike = |name: &str, share: f64, value: f64| {
            // Exactly one second of it.
            let now = (share * f64::from(SECONDS)).round() as u32 == SECONDS / 2;
            if name == high && now { limit * 1.01 } else { value }
        };
        let found = wrong(&lives(spike));
        let named = |text: &String| text.starts_with(high) && text.contains("came to");
        assert!(
            found.iter().any(named),
            "{high} at {limit:.0} and more is called {found:?}"
        );
    }
}

/// Jobs are forgotten and their events stay.
#[test]
fn a_journal_that_is_never_pruned_is_noticed() {
    let leak = |name: &str, share: f64, value: f64| {
        if name == "journal_kept" {
            value + share * 1e6
        } else {
            value
        }
    };
    let found = wrong(&lives(leak));
    assert!(
        found.iter().any(|text| text.contains("events are kept")),
        "{found:?}"
    );
}
