//! How much memory this process may have.

/// The smallest of the machine's memory and the limits of the control groups that this process is in, in bytes.
#[must_use]
pub fn memory_limit() -> u64 {
    let machine = machine_memory().unwrap_or(u64::MAX);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limits(&groups, |path| std::fs::read_to_string(path).ok()).fold(machine, u64::min)
}

fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Limits along every group's path, version 2 and version 1; a group inherits what its parents may have.
fn group_limits(groups: &str, read: impl Fn(&str) -> Option<String>) -> impl Iterator<Item = u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let mut path = path.trim_end_matches('/');
        loop {
            limits.extend(read(&format!("{root}{path}/{file}")).and_then(|text| text.trim().parse::<u64>().ok()));
            match path.rfind('/') {
                Some(end) => path = &path[..end],
                None => break,
            }
        }
    }
    limits.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_along_the_path_counts() {
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a/memory.max" => Some("4096\n".to_owned()),
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => Some("8192".to_owned()),
            _ => None,
        };
        assert_eq!(group_limits("0::/a/b\n", read).min(), Some(4096));
        assert_eq!(group_limits("3:cpu,memory:/c\n1:pids:/d\n", read).min(), Some(8192));
        assert_eq!(group_limits("nonsense", read).min(), None);
    }

    #[test]
    fn there_is_some_memory() {
        assert!(memory_limit() > 1 << 20);
    }
}
