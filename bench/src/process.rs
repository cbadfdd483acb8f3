//! Reads from `/proc` what a process uses, and describes the machine.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

/// The length of one tick of processor time, as Linux shows it to programs.
const TICK: Duration = Duration::from_millis(10);

/// The resources that a process has used.
pub(crate) struct ProcessUsage {
    pub(crate) cpu: Duration,
    /// Private memory, plus memory shared between processes of the same program.
    pub(crate) bytes: f64,
    /// All resident memory, including what it shares with files.
    pub(crate) resident_bytes: f64,
}

impl ProcessUsage {
    pub(crate) fn of(process: u32) -> Result<Self, String> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path)
                .map_err(|error| format!("{path}: {error}. This is for Linux."))
        };
        let stat = read("stat")?;
        let status = read("status")?;
        let cpu = ticks(&stat).ok_or("no processor time in /proc")?;
        let memory = |name| memory_kb(&status, name);
        let own = memory("RssAnon:").ok_or("no memory in /proc")?;
        // Memory shared between processes of the same program, as in nginx, counts as private.
        let bytes = (own + memory("RssShmem:").unwrap_or(0.0)) * 1024.0;
        let resident_bytes = memory("VmRSS:").ok_or("no memory in /proc")? * 1024.0;
        // Ticks are coarse but include ended threads; the figures of running threads are precise.
        Ok(ProcessUsage { cpu: (TICK * cpu).max(of_threads(process)), bytes, resident_bytes })
    }
}

/// The number of open files, sockets and other handles of a process.
pub(crate) fn handles(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    let open = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(open.count())
}

/// The processor time of the running threads of a process, or zero if the kernel does not record it.
fn of_threads(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let time = |thread: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(time).sum())
}

/// The ticks in user and kernel mode: fields 14 and 15, counted from the end of the name, which may contain spaces.
fn ticks(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn memory_kb(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Raises the limit of open files for this process and its children as far as the system allows. Returns the limit.
pub(crate) fn raise_open_files() -> Result<u64, String> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let raised = setrlimit(Resource::Nofile, limit);
    raised.map_err(|error| format!("more open files are not allowed: {error}"))?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Describes the machine in a sentence: processor, memory and system, but never its name.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let of =
        |name: &'static str| processors.lines().filter_map(move |line| line.strip_prefix(name));
    let model = of("model name").next().and_then(|it| it.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let count = of("processor").count();
    let memory = read("/proc/meminfo");
    let kilobytes = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = kilobytes.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let gigabytes = kilobytes.unwrap_or(0) >> 20;
    let system = read("/proc/sys/kernel/osrelease");
    let version = system.split(['-', '+']).next().unwrap_or_default().trim();
    format!("Machine: {count} processors ({model}), {gigabytes} GiB of memory, Linux {version}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_and_memory_are_read_whatever_the_name_is() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
        assert_eq!(ticks(stat), Some(300));
        let status = "Name:\ta\nVmRSS:\t    5678 kB\nRssAnon:\t    1234 kB\n";
        assert_eq!(memory_kb(status, "RssAnon:"), Some(1234.0));
        assert_eq!(memory_kb(status, "VmRSS:"), Some(5678.0));
    }
}
