//! What processes cost, as the kernel counts it.

use std::io;

/// What a process has used since its start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system seconds.
    pub cpu_seconds: f64,
    /// Memory that is present now, in bytes.
    pub resident_bytes: u64,
}

impl Usage {
    /// Asks for the usage of a process.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn of(process: u32) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name of the program may hold brackets and spaces.
        let (_, fields) = stat.rsplit_once(')').ok_or_else(invalid)?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
        let ticks = ticks(11).zip(ticks(12)).ok_or_else(invalid)?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(Self {
            cpu_seconds: (ticks.0 + ticks.1) as f64 / per_second,
            resident_bytes: kibibytes.ok_or_else(invalid)? * 1024,
        })
    }

    /// Asks for the usage of this process.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn own() -> io::Result<Self> {
        Self::of(std::process::id())
    }
}

/// Processes whose cost is counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What people call it.
    pub name: &'static str,
    /// The numbers of the processes.
    pub processes: Vec<u32>,
}

impl Part {
    /// Returns the processor seconds that they and those that they have started used so far.
    ///
    /// # Errors
    /// Where one of them has gone.
    pub fn cpu_seconds(&self) -> io::Result<f64> {
        let running = self.processes.iter().map(|process| xtask::process::running(*process));
        let seconds = running.map(|running| running.map(|running| running.cpu_seconds));
        seconds.sum::<Result<f64, _>>().map_err(io::Error::other)
    }
}

/// Returns the processor seconds that others on the host of this machine had instead of it, since it started; none where the kernel
/// knows of no host.
pub fn stolen_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // The first line is the sum of all cores: "cpu", user, nice, system, idle, iowait, irq, softirq, steal.
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<u64>().ok());
    ticks.unwrap_or(0) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Returns how many cores there are.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lets this process, and those that it starts, open as many files as the system allows; returns how many.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, connecting says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_memory_and_a_process_that_is_not_there_has_not() {
        assert!(Usage::own().expect("it runs").resident_bytes > 0);
        assert!(Usage::of(u32::MAX).is_err());
        let part = |process| Part { name: "it", processes: vec![process] };
        assert!(part(std::process::id()).cpu_seconds().is_ok());
        assert!(part(u32::MAX).cpu_seconds().is_err());
        assert!(stolen_seconds() >= 0.0);
    }
}
