//! Ctrl-C and SIGTERM: once to stop where everything is in order, twice to stop at once.
//!
//! SIGUSR1 asks a watch to step aside for a moment, so that another command can work on its folder.

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::error::{Code, CommandError};

/// What a user or the system has asked for.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    received: watch::Receiver<Option<Code>>,
    /// How often somebody asked to step aside.
    asked_aside: watch::Receiver<u64>,
}

impl Interrupts {
    /// Begins to listen. From now on a first signal ends nothing by itself, and a second one ends the process.
    pub(crate) fn listen(runtime: &Runtime) -> Self {
        let (sender, received) = watch::channel(None);
        let (asking, asked_aside) = watch::channel(0);
        let _guard = runtime.enter();
        // Where signals cannot be listened to, they keep their usual effect.
        if let (Ok(mut interrupt), Ok(mut terminate), Ok(mut aside)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::user_defined1()),
        ) {
            runtime.spawn(async move {
                loop {
                    let code = tokio::select! {
                        _ = interrupt.recv() => Code::Interrupted,
                        _ = terminate.recv() => Code::Terminated,
                        _ = aside.recv() => {
                            asking.send_modify(|count| *count += 1);
                            continue;
                        }
                    };
                    if sender.send_replace(Some(code)).is_some() {
                        std::process::exit(i32::from(code.exit()));
                    }
                }
            });
        }
        Self { received, asked_aside }
    }

    /// Returns the signal that came, if one did.
    pub(crate) fn received(&self) -> Option<Code> {
        *self.received.borrow()
    }

    /// Waits for a signal.
    pub(crate) async fn wait(&self) -> Code {
        let mut received = self.received.clone();
        let found = received.wait_for(Option::is_some).await.ok().and_then(|code| *code);
        match found {
            Some(code) => code,
            // Nobody listens to signals.
            None => std::future::pending().await,
        }
    }
}

impl Interrupts {
    /// Returns how often somebody asked to step aside.
    pub(crate) fn times_asked_aside(&self) -> u64 {
        *self.asked_aside.borrow()
    }

    /// Waits until somebody has asked to step aside more than so many times.
    pub(crate) async fn wait_for_aside(&self, times: u64) {
        let mut asked = self.asked_aside.clone();
        if asked.wait_for(|count| *count > times).await.is_err() {
            // Nobody listens to signals.
            std::future::pending::<()>().await;
        }
    }
}

/// The error of a command that was stopped.
pub(crate) fn stopped(code: Code, again: &str) -> CommandError {
    CommandError::new(code, "stopped")
        .state("everything is in order; what was not done yet is done by the next run")
        .help(again, "continues")
}
