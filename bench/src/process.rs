//! What a process takes of the machine, and what the machine is, from `/proc`.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

/// How long one tick of processor time is on Linux, for programs.
const TICK: Duration = Duration::from_millis(10);

/// What a process has taken.
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Memory of its own.
    pub(crate) bytes: f64,
    /// All of its memory that is resident, also that which it shares with files.
    pub(crate) resident_bytes: f64,
}

impl Usage {
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
        // What it shares with its like, as nginx does between its processes, is its own, too.
        let bytes = (own + memory("RssShmem:").unwrap_or(0.0)) * 1024.0;
        let resident_bytes = memory("VmRSS:").ok_or("no memory in /proc")? * 1024.0;
        // Ticks are coarse and count threads that are gone, too; the threads that run know it finely.
        Ok(Usage { cpu: (TICK * cpu).max(of_threads(process)), bytes, resident_bytes })
    }
}

/// How many files, sockets and the like a process has open.
pub(crate) fn handles(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    let open = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(open.count())
}

/// The processor time of the threads that a process has, where the kernel keeps it; else nothing.
fn of_threads(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let time = |thread: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(time).sum())
}

/// The ticks in user and kernel mode: fields 14 and 15, counted behind the name, which may have spaces.
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

/// Lets this process and those that it starts open as many files as the system allows them, and says how many
/// that are.
pub(crate) fn raise_open_files() -> Result<u64, String> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let raised = setrlimit(Resource::Nofile, limit);
    raised.map_err(|error| format!("more open files are not allowed: {error}"))?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// The machine in a sentence: processor, memory, system; never its name.
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
