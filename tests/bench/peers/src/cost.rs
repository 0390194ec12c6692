//! What a round costs: the clock, the processor, memory.

use std::fs;
use std::time::Instant;

/// One round.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Seconds by the clock.
    pub wall: f64,
    /// Seconds of the processor, all threads.
    pub processor: f64,
    /// MiB that the process grew by at its peak.
    pub memory: f64,
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// User and system time of this process, or of children that have ended.
pub fn processor(who: libc::c_int) -> f64 {
    // SAFETY: zeros are a valid `rusage`, and the pointer is to a value that lives through the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}

fn status(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

/// MiB of memory that this process has now.
pub fn resident() -> f64 {
    status("VmRSS:")
}

/// Does it once.
pub fn round<T>(work: impl FnOnce() -> T) -> (Cost, T) {
    // What earlier rounds gave back goes to the system, and the peak starts anew, so that this round's growth is seen.
    // SAFETY: takes no pointer.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, wall, time) = (status("VmRSS:"), Instant::now(), processor(libc::RUSAGE_SELF));
    let value = work();
    let cost = Cost {
        wall: wall.elapsed().as_secs_f64(),
        processor: processor(libc::RUSAGE_SELF) - time,
        memory: status("VmHWM:") - before,
    };
    (cost, value)
}

/// Rounds of one prover on one circuit.
#[derive(Clone, Default)]
pub struct Rounds(pub Vec<Cost>);

impl Rounds {
    /// The least, the median and the most of something.
    pub fn of(&self, what: fn(&Cost) -> f64) -> [f64; 3] {
        let mut all: Vec<f64> = self.0.iter().map(what).collect();
        all.sort_by(f64::total_cmp);
        match (all.first(), all.get(all.len() / 2), all.last()) {
            (Some(least), Some(median), Some(most)) => [*least, *median, *most],
            _ => [f64::NAN; 3],
        }
    }
}
