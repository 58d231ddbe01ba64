//! Memory of this machine, or of the part of it that a batch system or a container allots to this process.
use super::Memory;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the free and total memory for this process, within the limits of its control groups.
pub fn memory() -> Memory {
    let text = |path| read_to_string(path).unwrap_or_default();
    let groups = groups(&text("/proc/self/cgroup"));
    groups.iter().filter_map(ControlGroup::memory).fold(of_machine(&text("/proc/meminfo")), |a, b| Memory {
        free: a.free.min(b.free),
        total: a.total.min(b.total),
    })
}

/// Parses the memory of the machine from Linux's `/proc/meminfo`; values that are missing, as on other systems, are unlimited.
fn of_machine(meminfo: &str) -> Memory {
    let field = |name: &str| {
        let line = meminfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
    };
    Memory { free: field("MemAvailable:").unwrap_or(usize::MAX), total: field("MemTotal:").unwrap_or(usize::MAX) }
}

/// A control group of Linux, which may limit memory. The system shows it as a folder of files in both versions of control groups.
#[derive(Debug, PartialEq, Eq)]
struct ControlGroup {
    folder: PathBuf,
    names: &'static Names,
}

/// Names that differ between the versions of control groups: root folder, files for the limit and the usage, and lines of `memory.stat`
/// that count cached pages of files. Cached pages count as free.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    root: &'static str,
    limit: &'static str,
    used: &'static str,
    pages_of_files: [&'static str; 2],
}

const FIRST: Names = Names {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    pages_of_files: ["total_inactive_file", "total_active_file"],
};
const SECOND: Names = Names {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    pages_of_files: ["inactive_file", "active_file"],
};

/// Returns the control group of this process and all groups that contain it. `list` has lines of the form `number:controllers:path`. In a
/// container only the outermost folder may exist, and then it is that of the container.
fn groups(list: &str) -> Vec<ControlGroup> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.to_string());
        let names = match controllers {
            "" => &SECOND,
            _ if controllers.split(',').any(|name| name == "memory") => &FIRST,
            _ => return None,
        };
        let group = |path: &Path| ControlGroup { folder: Path::new(names.root).join(path), names };
        let path = PathBuf::from(path.trim_start_matches('/'));
        Some(path.ancestors().map(group).collect::<Vec<_>>())
    };
    list.lines().filter_map(of_line).flatten().collect()
}

impl ControlGroup {
    /// Returns the memory that the group leaves to the process; `None` if the group has no limit.
    fn memory(&self) -> Option<Memory> {
        let text = |name: &str| read_to_string(self.folder.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<usize>().ok();
        let (limit, used) = (number(self.names.limit)?, number(self.names.used)?);
        let statistics = text("memory.stat").unwrap_or_default();
        let of_line = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            self.names.pages_of_files.contains(&name).then(|| bytes.trim().parse::<usize>().ok())?
        };
        let pages_of_files: usize = statistics.lines().filter_map(of_line).sum();
        Some(Memory { free: limit.saturating_sub(used.saturating_sub(pages_of_files)), total: limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_free() {
        let meminfo = "MemTotal:       65536 kB\nMemFree:         1024 kB\nMemAvailable:   32768 kB\n";
        assert_eq!(of_machine(meminfo), Memory { free: 32 << 20, total: 64 << 20 });
        assert_eq!(of_machine(""), Memory { free: usize::MAX, total: usize::MAX });
    }

    #[test]
    fn groups_are_in_others() {
        let folders = |list: &str| -> Vec<String> {
            groups(list).into_iter().map(|group| group.folder.display().to_string()).collect()
        };
        let job = ["/sys/fs/cgroup/slurm/job_7", "/sys/fs/cgroup/slurm", "/sys/fs/cgroup/"];
        assert_eq!(folders("0::/slurm/job_7\n"), job);
        assert_eq!(folders("0::/\n"), ["/sys/fs/cgroup/"]);
        let first = ["/sys/fs/cgroup/memory/job_7", "/sys/fs/cgroup/memory/"];
        assert_eq!(folders("3:cpu,cpuacct:/job_7\n2:memory:/job_7\n"), first);
        assert!(folders("nothing").is_empty());
    }

    /// Memory that caches files counts as free; a group without a limit is ignored.
    #[test]
    fn a_group_leaves_what_it_has_not_used() {
        let folder = std::env::temp_dir().join(format!("ferrite-machine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let group = |names| ControlGroup { folder: folder.clone(), names };
        assert_eq!(group(&SECOND).memory(), None);
        write("memory.current", "700\n");
        write("memory.max", "max\n");
        assert_eq!(group(&SECOND).memory(), None);
        write("memory.max", "1000\n");
        assert_eq!(group(&SECOND).memory(), Some(Memory { free: 300, total: 1000 }));
        write("memory.stat", "anon 500\ninactive_file 150\nactive_file 50\n");
        assert_eq!(group(&SECOND).memory(), Some(Memory { free: 500, total: 1000 }));
        write("memory.limit_in_bytes", "600\n");
        write("memory.usage_in_bytes", "700\n");
        assert_eq!(group(&FIRST).memory(), Some(Memory { free: 0, total: 600 }));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
