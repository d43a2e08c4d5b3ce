//! Other programs: run them, read what they print, and measure what they cost.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::{Context, Failure, Result, fail};

/// Runs a command with our own stdout and stderr; a non-zero exit is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().context(name_of(command))?;
    if status.success() { Ok(()) } else { fail(format!("{}: {status}", name_of(command))) }
}

/// Runs a command and shows what it said when it has ended, under a title, so that it stands together; a non-zero exit is an error.
pub fn run_quietly(command: &mut Command, title: impl Display) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context(name_of(command))?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    println!("{title}:\n{}", said.concat());
    match output.status.success() {
        true => Ok(()),
        false => fail(format!("{}: {}", name_of(command), output.status)),
    }
}

/// Runs a command quietly and gives its stdout; a non-zero exit is an error with its stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().context(name_of(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return fail(format!("{}: {}: {}", name_of(command), output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Says whether a program can be found on the path.
pub fn is_installed(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// What one run of a command cost.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// User and system seconds of the command and all children it waited for.
    pub cpu_seconds: f64,
    /// Peak memory of the largest process, in MiB.
    pub rss_mib: f64,
    /// What the command printed.
    pub stdout: String,
    /// The exit code (or -1 for a signal).
    pub exit_code: i32,
}

/// GNU time, which reports the resources the kernel counted (wait4) for a command.
pub const GNU_TIME: &str = "/usr/bin/time";

/// Runs a command under GNU time and says what it cost; exit codes outside `accepted` are errors.
///
/// The figures come from wait4 inside GNU time, because reading them ourselves would need unsafe
/// code; `scratch` is a folder for its report.
pub fn measure(command: &Command, scratch: &Path, accepted: &[i32]) -> Result<Usage> {
    let report = scratch.join("resources.txt");
    let mut timed = Command::new(GNU_TIME);
    timed.args(["--quiet", "--format=%U %S %M", "--output"]).arg(&report);
    timed.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    timed.stdin(Stdio::null());
    let start = Instant::now();
    let output = timed.output().context(GNU_TIME)?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let exit_code = output.status.code().unwrap_or(-1);
    if !accepted.contains(&exit_code) {
        let said = String::from_utf8_lossy(&output.stderr);
        return fail(format!("{}: exit {exit_code}: {}", name_of(command), said.trim()));
    }
    let text = fs::read_to_string(&report).context("the report of GNU time")?;
    let (cpu_seconds, rss_mib) = read_report(&text)?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Usage { wall_seconds, cpu_seconds, rss_mib, stdout, exit_code })
}

fn read_report(text: &str) -> Result<(f64, f64)> {
    let numbers: Vec<f64> =
        text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [user, system, kibibytes] => Ok((user + system, kibibytes / 1024.0)),
        _ => fail(format!("GNU time reported '{}'", text.trim())),
    }
}

/// What a running process and its living children have cost up to now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Running {
    /// User and system seconds, finished children included.
    pub cpu_seconds: f64,
    /// Memory now, in MiB, of the largest process.
    pub rss_mib: f64,
    /// Peak memory in MiB of the largest process.
    pub peak_mib: f64,
}

/// Reads what a running process and its living children have cost up to now.
pub fn running(process_id: u32) -> Result<Running> {
    let mut sum = running_alone(process_id).context(format!("process {process_id}"))?;
    for child in children_of(process_id) {
        // A child may end between the two reads; what it cost is then in its parent's figures.
        if let Ok(part) = running(child) {
            sum.cpu_seconds += part.cpu_seconds;
            sum.rss_mib = sum.rss_mib.max(part.rss_mib);
            sum.peak_mib = sum.peak_mib.max(part.peak_mib);
        }
    }
    Ok(sum)
}

/// Makes the kernel count the peak memory of a process and its children from now on.
pub fn reset_peak(process_id: u32) {
    // Where the kernel refuses, the peak is that of the whole life: higher, never lower.
    let _unsupported = fs::write(format!("/proc/{process_id}/clear_refs"), "5");
    children_of(process_id).into_iter().for_each(reset_peak);
}

fn running_alone(process_id: u32) -> Result<Running> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let mebibytes = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        let kibibytes = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        kibibytes.unwrap_or(0.0_f64) / 1024.0
    };
    let ticks = cpu_ticks(&stat)?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok(Running {
        cpu_seconds: ticks as f64 / per_second,
        rss_mib: mebibytes("VmRSS:"),
        peak_mib: mebibytes("VmHWM:"),
    })
}

/// Sums utime, stime, cutime and cstime of a line of `/proc/<id>/stat`.
fn cpu_ticks(stat: &str) -> Result<u64> {
    // The program's name may hold spaces and brackets; the last bracket ends it.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let times = fields.get(11..15).ok_or_else(|| Failure::new("a short /proc stat line"))?;
    times.iter().map(|field| field.parse::<u64>().context("a /proc stat line")).sum()
}

/// The processes that a process has started and that are its children still.
pub fn children_of(process_id: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process_id}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
        .collect()
}

/// Asks a process to end (SIGTERM).
pub fn terminate(process_id: u32) {
    let id = i32::try_from(process_id).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // It may be gone already, which is what was asked for.
        let _already_gone = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

fn name_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).take(4);
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Writes a file that only we can read.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).context(path.display())?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let failure = output(Command::new("ls").arg("/no/such/folder")).unwrap_err();
        assert!(failure.to_string().contains("/no/such/folder"), "{failure}");
    }

    #[test]
    fn cpu_time_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 20 3 400 5000 0 0";
        assert_eq!(cpu_ticks(stat), Ok(20 + 3 + 400 + 5000));
        assert!(cpu_ticks("7 (short) S 1").is_err());
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(running(std::process::id()).unwrap().peak_mib > 0.0);
    }

    #[test]
    fn the_report_of_gnu_time_is_user_system_and_kibibytes() {
        assert_eq!(read_report("1.50 0.25 2048\n"), Ok((1.75, 2.0)));
        assert!(read_report("Command exited").is_err());
    }
}
