//! `syncline serve --role supervisor`: sync services as processes of the same program.
//!
//! *Invariant*: none of them outlives the supervisor: each ends with its standard input, whose other side the kernel closes with the
//! supervisor, however that ends.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use server::supervisor::crew::{Instance, Workshop};
use server::supervisor::policy::Aim;
use server::supervisor::{SupervisorOptions, supervise};

use super::{broker, say_ready};
use crate::arguments::ServeArguments;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::interrupt::Interrupts;

/// How long a group of commits may take from its sending to its answer.
const RESPONSE: Duration = Duration::from_millis(400);

/// Runs the supervisor.
pub(super) fn run(context: &Context<'_>, arguments: &ServeArguments) -> Result<u8> {
    let (Some(url), Some(database), Some(store)) =
        (&arguments.broker, &arguments.data.database, &arguments.store)
    else {
        return Err(CommandError::usage(
            "a supervisor wants --broker, --database and --store, which its sync services share with the gateways",
        )
        .state("nothing was started"));
    };
    let program = std::env::current_exe().map_err(|error| {
        CommandError::new(Code::Defect, "the program does not find itself").cause(error)
    })?;
    let data = arguments.data.data.clone().unwrap_or_else(|| context.home.server_data());
    let words = ["--broker", url, "--database", database, "--store", store];
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    if let Some(file) = &arguments.store_credentials {
        words.extend(["--store-credentials".into(), file.into()]);
    }
    let options = SupervisorOptions {
        listen: arguments.listen,
        metrics_listen: arguments.metrics_listen,
        broker: broker(context, url)?,
        aim: Aim {
            instances: arguments.instances.clone(),
            response: RESPONSE,
            calm: Duration::from_secs(arguments.calm),
        },
        workshop: Box::new(Processes { program, words, data }),
        clock: context.clock.clone(),
        random: context.random.clone(),
    };
    let runtime = context.runtime()?;
    let interrupts = Interrupts::listen(&runtime);
    let is_json = context.ui.is_json();
    let ready = move |address| say_ready(is_json, "http", address);
    let stop = async move {
        interrupts.wait().await;
    };
    runtime.block_on(supervise(options, ready, stop))?;
    Ok(0)
}

/// Starts sync services.
struct Processes {
    program: PathBuf,
    words: Vec<OsString>,
    data: PathBuf,
}

impl Workshop for Processes {
    fn start(&mut self, number: usize) -> io::Result<Box<dyn Instance>> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--no-input", "--role", "sync-service", "--end-with-stdin"]);
        // Nobody needs to know where it answers; two would not fit at one address.
        command.args(["--listen", "127.0.0.1:0", "--data"]);
        command.arg(self.data.join(format!("sync-service-{number}"))).args(&self.words);
        // Its log is that of the supervisor.
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        let alive = child.stdin.take();
        Ok(Box::new(Process { child, _alive: alive }))
    }
}

struct Process {
    child: Child,
    /// It is to run as long as this is there.
    _alive: Option<ChildStdin>,
}

impl Instance for Process {
    fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn ask_to_end(&mut self) {
        // One that has ended keeps its number until it was asked how; after that the number may be another one's.
        if self.ended().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    fn kill(&mut self) {
        // It may have gone already, which is what is wanted.
        let _ = self.child.kill();
    }
}
