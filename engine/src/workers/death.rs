//! What the end of a worker process means for the work it had.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use proofkeep_store::ids::{ProcessId, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::{Failure, FailureClass};

use super::held::Held;

/// The exit code of a worker process whose allocator was refused memory.
pub const EXIT_OUT_OF_MEMORY: i32 = 71;

/// What is known about a process besides its exit status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// We killed it.
    pub killed: bool,
    /// We killed it since it couldn't be understood any more, or hung up and lived on.
    pub nonsense: bool,
    /// It was told to quit.
    pub quitting: bool,
    /// The kernel counted a kill for lack of memory since it was started; `None` where nobody counts.
    pub oom_counted: Option<bool>,
    /// Its last resident size in bytes.
    pub rss: u64,
    /// Bytes that its tickets and keys allow.
    pub allowed: u64,
}

/// What a death comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// How the attempts in the process end.
    pub failure: Failure,
    /// It died by its own fault, which counts towards poison.
    pub own_fault: bool,
}

impl Death {
    /// The command that ends what the process held. `culprit`: the lease that it was killed for, and how its attempt ends.
    #[must_use]
    pub fn lost(
        self,
        process: ProcessId,
        held: &Held,
        culprit: Option<(Token, Failure)>,
        process_peak_bytes: Option<u64>,
    ) -> Command {
        // An import that eats all memory is at fault when it was alone; otherwise it would be tried for ever.
        let alone = !held.imports.is_empty() && held.tasks().next().is_none();
        let ate_all = alone && self.failure.class == FailureClass::OutOfMemory;
        Command::ProcessLost {
            process,
            own_fault: self.own_fault || ate_all,
            failure: self.failure,
            culprit,
            process_peak_bytes,
        }
    }
}

/// Judges the end of a worker process.
#[must_use]
pub fn judge(status: ExitStatus, known: Circumstances) -> Death {
    let interrupted = |text: String, own_fault| Death {
        failure: Failure::new(FailureClass::Interrupted, text),
        own_fault,
    };
    let out_of_memory = |text: String| Death {
        failure: Failure::new(FailureClass::OutOfMemory, text),
        own_fault: false,
    };
    if known.quitting && status.success() {
        let failure = Failure::new(FailureClass::Shutdown, "the worker process ended with the daemon");
        return Death {
            failure,
            own_fault: false,
        };
    }
    // One that was dead already when we killed it died of something else.
    if known.killed && status.signal() == Some(libc::SIGKILL) {
        if known.nonsense {
            return interrupted(
                "proofkeep killed the worker process, which could not be understood any more".to_owned(),
                true,
            );
        }
        return interrupted("proofkeep killed the worker process".to_owned(), false);
    }
    if let Some(code) = status.code() {
        return if code == EXIT_OUT_OF_MEMORY {
            out_of_memory(
                "an allocation of the worker process failed; give it more memory or a smaller circuit"
                    .to_owned(),
            )
        } else {
            interrupted(format!("the worker process exited with code {code}"), true)
        };
    }
    let signal = status.signal().unwrap_or(0);
    let own = [
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGSYS,
        libc::SIGTRAP,
    ];
    if own.contains(&signal) {
        return interrupted(format!("the worker process died by {}", name(signal)), true);
    }
    if signal == libc::SIGKILL {
        let guessed = known.allowed > 0 && known.rss > known.allowed / 10 * 9;
        if known.oom_counted.unwrap_or(guessed) {
            return out_of_memory(format!(
                "the kernel killed the worker process for lack of memory at {} MiB",
                known.rss >> 20
            ));
        }
    }
    interrupted(
        format!("somebody ended the worker process with {}", name(signal)),
        false,
    )
}

fn name(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn signal(number: i32) -> ExitStatus {
        ExitStatus::from_raw(number)
    }

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn outcome(status: ExitStatus, known: Circumstances) -> (FailureClass, bool) {
        let death = judge(status, known);
        (death.failure.class, death.own_fault)
    }

    #[test]
    fn only_its_own_fault_counts_towards_poison() {
        use FailureClass::{Interrupted, OutOfMemory, Shutdown};
        let nothing = Circumstances::default();
        let killed = Circumstances {
            killed: true,
            ..nothing
        };
        for own in [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL] {
            assert_eq!(outcome(signal(own), nothing), (Interrupted, true));
            assert_eq!(outcome(signal(own), killed), (Interrupted, true));
        }
        assert_eq!(outcome(exit(1), nothing), (Interrupted, true));
        assert_eq!(outcome(exit(71), nothing), (OutOfMemory, false));
        assert_eq!(outcome(signal(libc::SIGKILL), killed), (Interrupted, false));
        let nonsense = Circumstances {
            nonsense: true,
            ..killed
        };
        assert_eq!(outcome(signal(libc::SIGKILL), nonsense), (Interrupted, true));
        assert_eq!(outcome(signal(libc::SIGTERM), nothing), (Interrupted, false));
        assert_eq!(
            outcome(
                exit(0),
                Circumstances {
                    quitting: true,
                    ..nothing
                }
            ),
            (Shutdown, false)
        );
        assert_eq!(outcome(exit(0), nothing), (Interrupted, true));
    }

    #[test]
    fn a_sigkill_is_lack_of_memory_only_if_somebody_says_so() {
        use FailureClass::{Interrupted, OutOfMemory};
        let known = |oom_counted, rss| Circumstances {
            oom_counted,
            rss,
            allowed: 1000,
            ..Circumstances::default()
        };
        assert_eq!(
            outcome(signal(libc::SIGKILL), known(Some(true), 0)).0,
            OutOfMemory
        );
        assert_eq!(
            outcome(signal(libc::SIGKILL), known(Some(false), 990)).0,
            Interrupted
        );
        assert_eq!(outcome(signal(libc::SIGKILL), known(None, 990)).0, OutOfMemory);
        assert_eq!(outcome(signal(libc::SIGKILL), known(None, 100)).0, Interrupted);
    }
}
