//! How much memory there is: the machine's, and what control groups (v1 and v2) leave of it.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory that this process and its children may use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// What the machine has.
    pub machine: u64,
    /// The tightest limit of a control group above this process.
    pub cgroup: Option<u64>,
}

impl MachineMemory {
    /// The smaller of the two.
    #[must_use]
    pub fn usable(self) -> u64 {
        self.cgroup.map_or(self.machine, |limit| limit.min(self.machine))
    }

    /// What is proved with when nothing else is configured: four fifths; the rest is for the daemon, its cache and the
    /// system.
    #[must_use]
    pub fn default_budget(self) -> u64 {
        self.usable() / 5 * 4
    }
}

/// Reads the limits of this machine.
#[must_use]
pub fn machine_memory() -> MachineMemory {
    memory_below(Path::new("/"))
}

fn memory_below(root: &Path) -> MachineMemory {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let machine = meminfo
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map_or(u64::MAX, |kib| kib.saturating_mul(1024));
    let limits = groups(root).into_iter().flat_map(|group| {
        let file = if group.v2 {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        group.and_above().filter_map(move |dir| {
            fs::read_to_string(dir.join(file))
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        })
    });
    // v1 writes a number near 2^63 where there is no limit.
    let cgroup = limits.filter(|limit| *limit < 1 << 60).min();
    MachineMemory { machine, cgroup }
}

/// Less than a twentieth of what may be used is left, in the machine or in one of this process's control groups.
#[must_use]
pub fn is_short() -> bool {
    is_short_below(Path::new("/"))
}

fn is_short_below(root: &Path) -> bool {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let kib = |name: &str| {
        meminfo.lines().find_map(|line| {
            line.strip_prefix(name)?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    let machine = kib("MemAvailable:")
        .zip(kib("MemTotal:"))
        .is_some_and(|(left, all)| left < all / 20);
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    machine
        || groups(root).iter().any(|group| {
            let (limit, used) = if group.v2 {
                ("memory.max", "memory.current")
            } else {
                ("memory.limit_in_bytes", "memory.usage_in_bytes")
            };
            group.and_above().any(|dir| {
                let limit = number(dir.join(limit)).filter(|limit| *limit < 1 << 60);
                // The page cache is in use too, but goes when it must.
                let cached = cached(&dir.join("memory.stat"));
                limit.zip(number(dir.join(used))).is_some_and(|(limit, used)| {
                    limit.saturating_sub(used.saturating_sub(cached)) < limit / 20
                })
            })
        })
}

/// Bytes of the inactive page cache of a group.
fn cached(stat: &Path) -> u64 {
    let text = fs::read_to_string(stat).unwrap_or_default();
    let line = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    line("total_inactive_file ")
        .or_else(|| line("inactive_file "))
        .unwrap_or(0)
}

struct Group {
    mount: PathBuf,
    path: PathBuf,
    v2: bool,
}

impl Group {
    /// The group's directory and those above it up to the mount point; a container sees its own group at the mount.
    fn and_above(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let mount = self.mount.clone();
        let mut next = Some(self.path.clone());
        std::iter::from_fn(move || {
            let here = next.take()?;
            if here != mount {
                next = here
                    .parent()
                    .map(Path::to_path_buf)
                    .filter(|parent| parent.starts_with(&mount));
            }
            Some(here)
        })
    }
}

/// The memory groups that this process is in.
fn groups(root: &Path) -> Vec<Group> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let v2 = id == "0" && controllers.is_empty();
            if !v2 && !controllers.split(',').any(|name| name == "memory") {
                return None;
            }
            let mount = root.join(if v2 {
                "sys/fs/cgroup"
            } else {
                "sys/fs/cgroup/memory"
            });
            let inside = path.trim_start_matches('/');
            let path = if inside.is_empty() {
                mount.clone()
            } else {
                mount.join(inside)
            };
            Some(Group { mount, path, v2 })
        })
        .collect()
}

/// Counts kills for lack of memory in the groups of this process, so that a worker's death can be told from another
/// SIGKILL.
#[derive(Clone, Debug, Default)]
pub struct OomCounter {
    files: Vec<PathBuf>,
}

impl OomCounter {
    /// Finds the files that count; there may be none.
    #[must_use]
    pub fn find() -> Self {
        Self::below(Path::new("/"))
    }

    fn below(root: &Path) -> Self {
        let file = |group: &Group, dir: PathBuf| {
            dir.join(if group.v2 {
                "memory.events"
            } else {
                "memory.oom_control"
            })
        };
        let files = groups(root)
            .iter()
            .filter_map(|group| {
                group
                    .and_above()
                    .map(|dir| file(group, dir))
                    .find(|file| counts(file).is_some())
            })
            .collect();
        Self { files }
    }

    /// Kills so far; `None` where nobody counts.
    #[must_use]
    pub fn kills(&self) -> Option<u64> {
        let counts: Vec<u64> = self.files.iter().filter_map(|file| counts(file)).collect();
        if counts.is_empty() {
            None
        } else {
            Some(counts.iter().sum())
        }
    }
}

fn counts(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_tightest_group_counts_in_v2() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\n");
        write(root, "proc/self/cgroup", "0::/a/b\n");
        write(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
        write(root, "sys/fs/cgroup/a/memory.max", "4096000\n");
        write(
            root,
            "sys/fs/cgroup/a/b/memory.events",
            "low 0\noom 3\noom_kill 2\n",
        );
        let memory = memory_below(root);
        assert_eq!(
            memory,
            MachineMemory {
                machine: 16_384_000,
                cgroup: Some(4_096_000)
            }
        );
        assert_eq!(memory.usable(), 4_096_000);
        assert_eq!(memory.default_budget(), 3_276_800);
        assert_eq!(OomCounter::below(root).kills(), Some(2));
        write(root, "sys/fs/cgroup/a/memory.current", "4000000\n");
        assert!(is_short_below(root));
        write(
            root,
            "sys/fs/cgroup/a/memory.stat",
            "anon 5\ninactive_file 1000000\n",
        );
        assert!(!is_short_below(root));
    }

    #[test]
    fn v1_and_containers_that_see_their_group_at_the_mount() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "proc/meminfo", "MemTotal: 100 kB\n");
        write(root, "proc/self/cgroup", "5:cpu,memory:/docker/abc\n0::/\n");
        write(
            root,
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        write(
            root,
            "sys/fs/cgroup/memory/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
        );
        assert_eq!(
            memory_below(root),
            MachineMemory {
                machine: 102_400,
                cgroup: None
            }
        );
        assert_eq!(OomCounter::below(root).kills(), Some(5));
        assert!(!is_short_below(root));
        write(root, "proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 4 kB\n");
        assert!(is_short_below(root));
    }

    #[test]
    fn nothing_known_is_no_limit_and_no_count() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            memory_below(root.path()),
            MachineMemory {
                machine: u64::MAX,
                cgroup: None
            }
        );
        assert_eq!(OomCounter::below(root.path()).kills(), None);
        assert!(machine_memory().usable() > 0);
    }
}
