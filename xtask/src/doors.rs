//! Other people's programs at our doors: WebDAV and REST as those see them who did not write them.
//!
//! *Participants*: `cargo xtask doors`; a real server and the gateway of a device, on loopback, with throw-away data; litmus, rclone,
//! davfs2 and cadaver at both, schemathesis at the server. *Goals*: one command says what works with which program, as it is today; what a
//! tool finds fault with is either explained in [`exceptions`] and [`schemathesis`], or makes the command fail. *Non-goals*: to measure; to
//! run in the test run, for it wants apt, pip and minutes. *Invariants*: every program that is started is bounded in time; an outcome that
//! cannot be read is an error, never a success.

mod cadaver;
mod davfs2;
mod exceptions;
mod finding;
mod http;
mod litmus;
mod rclone;
mod report;
mod schemathesis;
mod stage;
mod tree;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use self::finding::{Exception, Finding, Outcome, one_line};
use self::report::Report;
use self::stage::Stage;
use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::{demo, install, process, repository_root};

const USAGE: &str = "\
usage: cargo xtask doors [--only NAME,...] [--binary FILE] [--out DIR] [--keep]

  Installs what is missing (apt, pip), starts a server and the gateway of a device, and lets programs of others
  knock: litmus, rclone, davfs2, cadaver, schemathesis. Ends with an error where one of them finds what nobody
  has explained.

  --only NAME,...   these programs (default: all)
  --binary FILE     our program (default: a fresh release build)
  --out DIR         for tables and logs (default: bench-results/doors)
  --keep            keep the data of server and device";

/// A program of others.
struct Tool {
    name: &'static str,
    /// Programs that must be there, and the packages of Debian that bring them.
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    run: fn(&Stage) -> Result<Vec<Finding>>,
}

const TOOLS: [Tool; 5] = [
    Tool { name: litmus::NAME, programs: &["litmus"], packages: &["litmus"], run: litmus::run },
    Tool { name: rclone::NAME, programs: &["rclone"], packages: &["rclone"], run: rclone::run },
    Tool {
        name: davfs2::NAME,
        programs: &[davfs2::PROGRAM],
        packages: &["davfs2"],
        run: davfs2::run,
    },
    Tool { name: cadaver::NAME, programs: &["cadaver"], packages: &["cadaver"], run: cadaver::run },
    Tool {
        name: schemathesis::NAME,
        programs: &["python3"],
        packages: &[install::PYTHON_PACKAGE],
        run: schemathesis::run,
    },
];

/// Runs `cargo xtask doors`.
pub fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.flag("--help") {
        println!("{USAGE}");
        return arguments.finish();
    }
    let tools = chosen(arguments.value("--only")?.as_deref())?;
    let out = arguments.value("--out")?.map(PathBuf::from);
    let named = arguments.value("--binary")?.map(PathBuf::from);
    let keep = arguments.flag("--keep");
    arguments.finish()?;
    install_missing(&tools)?;
    let binary = match named {
        Some(binary) => binary.canonicalize().context(binary.display())?,
        None => demo::release_program()?,
    };
    let out = out.unwrap_or_else(|| repository_root().join("bench-results").join("doors"));
    fs::create_dir_all(&out).context(out.display())?;
    let out = out.canonicalize()?;
    let folder = std::env::temp_dir().join(format!("syncline-doors-{}", std::process::id()));
    fs::create_dir(&folder).context(folder.display())?;
    let knocked = Stage::put_up(&binary, &folder, &out).and_then(|stage| knock(&stage, &tools));
    match keep {
        true => println!("the data are in {}", folder.display()),
        false => fs::remove_dir_all(&folder).context(folder.display())?,
    }
    conclude(&report(&tools, knocked?)?, &out)
}

/// The tools of these names, or all.
fn chosen(names: Option<&str>) -> Result<Vec<&'static Tool>> {
    let Some(names) = names else { return Ok(TOOLS.iter().collect()) };
    let names: Vec<&str> = names.split(',').collect();
    if let Some(name) = names.iter().find(|name| TOOLS.iter().all(|tool| tool.name != **name)) {
        return fail(format!("no program is called '{name}' here\n\n{USAGE}"));
    }
    Ok(TOOLS.iter().filter(|tool| names.contains(&tool.name)).collect())
}

fn install_missing(tools: &[&Tool]) -> Result<()> {
    let is_missing = |tool: &&&Tool| {
        tool.programs.iter().any(|program| !process::is_installed(program))
            || (tool.name == schemathesis::NAME && !install::python_makes_environments())
    };
    let missing = tools.iter().filter(is_missing).flat_map(|tool| tool.packages.iter().copied());
    let mut packages: Vec<&str> = missing.collect();
    if !process::is_installed("curl") {
        packages.push("curl");
    }
    install::packages(&packages)
}

/// Lets one tool after the other knock. One that cannot be run, or that nobody understands, is a finding, too.
fn knock(stage: &Stage, tools: &[&Tool]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for tool in tools {
        println!("{} ...", tool.name);
        findings.extend((tool.run)(stage).unwrap_or_else(|failure| {
            vec![Finding {
                tool: tool.name,
                door: "all",
                part: "itself".to_owned(),
                what: "to be run, and understood".to_owned(),
                outcome: Outcome::Failed,
                says: one_line(&failure.to_string()),
                times: 1,
            }]
        }));
    }
    Ok(findings)
}

fn report(tools: &[&Tool], findings: Vec<Finding>) -> Result<Report<'static>> {
    let is_meant = |name: &str| tools.iter().any(|tool| tool.name == name);
    let version = |tool: &&Tool| match tool.name {
        schemathesis::NAME => (tool.name, schemathesis::RELEASE.to_owned()),
        name => (name, install::package_version(name)),
    };
    let day = process::output(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short", "HEAD"]).current_dir(repository_root());
    let commit = process::output(&mut git).unwrap_or_else(|_| "unknown".to_owned());
    let known: Vec<&Exception> =
        exceptions::EXCEPTIONS.iter().chain(schemathesis::EXCEPTIONS).collect();
    let left_out = match is_meant(schemathesis::NAME) {
        true => schemathesis::LEFT_OUT.to_vec(),
        false => Vec::new(),
    };
    Ok(Report {
        head: format!(
            "By `cargo xtask doors` on {}, of commit {}, Linux {}, over the loopback interface.",
            day.trim(),
            commit.trim(),
            kernel.trim()
        ),
        versions: tools.iter().map(version).collect(),
        findings,
        known: known.into_iter().filter(|known| is_meant(known.tool)).collect(),
        left_out,
    })
}

/// Writes and shows the report, and fails by what nobody has explained.
fn conclude(report: &Report<'_>, out: &Path) -> Result<()> {
    report.write(out)?;
    println!("{}", report.markdown());
    println!("tables and logs are in {}", out.display());
    match report.surprises().len() {
        0 => Ok(()),
        count => fail(format!("{count} findings are not explained")),
    }
}

/// A program that is killed when it takes longer than so many seconds; it then ends with 124.
fn bounded(seconds: u32, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &seconds.to_string()]).arg(program);
    command.stdin(Stdio::null());
    command
}

/// Runs a command, and returns how it ended and what it said on both streams.
fn said_by(command: &mut Command) -> Result<(ExitStatus, String)> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().context(program)?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status, String::from_utf8_lossy(&said).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_chosen_by_their_names() {
        let names = |only: Option<&str>| {
            chosen(only).map(|tools| tools.iter().map(|tool| tool.name).collect::<Vec<_>>())
        };
        assert_eq!(names(None).unwrap().len(), TOOLS.len());
        assert_eq!(names(Some("cadaver,litmus")), Ok(vec!["litmus", "cadaver"]));
        assert!(names(Some("litmus,curl")).unwrap_err().to_string().contains("'curl'"));
    }
}
