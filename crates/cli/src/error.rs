//! What a user reads when something does not work: a headline, the cause, what is safe, and what to type next.
//!
//! Every code is stable for ever and explained in `docs/guide/errors.md`, which a test compares with [`Code`].

use std::fmt::Write as _;

use serde_json::{Value, json};

mod translate;

pub(crate) use translate::{
    busy, is_damaged_database, may_only_read, needs_newer_keys, no_such_workspace, not_signed_in,
    unreachable,
};

/// A result of this room.
pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal, $exit:literal;)*) => {
        /// The codes of errors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $($(#[doc = $meaning])+ $name,)*
        }

        impl Code {
            /// All codes.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the text, for example `E0201`.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the exit code of the process.
            pub(crate) fn exit(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }
        }
    };
}

codes! {
    /// The command line makes no sense.
    Usage = "E0101", 2;
    /// A question would have to be asked, and nobody is there to answer it.
    WouldAsk = "E0102", 2;
    /// The folder is not synced.
    NotSynced = "E0201", 10;
    /// The folder is synced already.
    AlreadySynced = "E0202", 1;
    /// The folder is not the one that was synced: unmounted, replaced or copied.
    OtherFolder = "E0203", 1;
    /// Many files vanished at once.
    MassDelete = "E0204", 1;
    /// Another process works on the folder.
    Locked = "E0205", 11;
    /// There is no such path in the workspace.
    NoSuchPath = "E0206", 1;
    /// The path has no such version.
    NoSuchVersion = "E0207", 1;
    /// Something is there already.
    Exists = "E0208", 1;
    /// The path is not in conflict.
    NoConflict = "E0209", 1;
    /// The conflict cannot be decided by merging.
    NotMerged = "E0210", 5;
    /// Another device changed the settings of the workspace first.
    SettingsChanged = "E0211", 1;
    /// Another device removes what is stored twice.
    NotOurTurn = "E0212", 11;
    /// A cleanup has removed the content of the version.
    CleanedUp = "E0213", 1;
    /// The clock of this computer is far ahead of everything that was ever written.
    ClockAhead = "E0214", 1;
    /// Other devices wrote whenever a cleanup was about to remove something.
    Overtaken = "E0215", 1;
    /// The folder cannot be shared by itself.
    NotShareable = "E0216", 1;
    /// Folders did not become what a trace makes of them.
    NotAsTraced = "E0217", 1;
    /// Operations of a benchmark failed, or files of it are lost.
    BenchmarkFailed = "E0218", 1;
    /// Packets cannot be captured, or not all of them, or the program that is probed fails.
    NotProbed = "E0219", 1;
    /// No space is left on this computer.
    NoSpaceHere = "E0301", 7;
    /// No space is left in the store or the quota.
    NoSpaceThere = "E0302", 7;
    /// The local database failed.
    Database = "E0303", 1;
    /// Something was written by a newer version.
    Newer = "E0304", 1;
    /// A file or folder of this computer cannot be used.
    File = "E0305", 1;
    /// A file or folder of this computer may not be used.
    FileRefused = "E0306", 4;
    /// Nobody is signed in, or the device was signed out.
    NotSignedIn = "E0401", 4;
    /// The name or the password is wrong.
    WrongPassword = "E0402", 4;
    /// The server or store does not allow it.
    Refused = "E0403", 4;
    /// There is no such workspace.
    NoSuchWorkspace = "E0404", 10;
    /// The home of this device was copied.
    DeviceCloned = "E0405", 4;
    /// The name is in use.
    Taken = "E0406", 1;
    /// There is no such account or device.
    NoSuchThing = "E0407", 1;
    /// The request makes no sense to the server.
    Invalid = "E0408", 1;
    /// The secrets of a store are missing, wrong, or open to others.
    Credentials = "E0409", 4;
    /// The account may read the workspace and not change it.
    MayOnlyRead = "E0410", 4;
    /// The account has a second factor, and no code was given.
    SecondFactorNeeded = "E0411", 4;
    /// The code of a second factor is wrong.
    WrongSecondFactor = "E0415", 4;
    /// What a provider of identities says proves nothing, or it says no.
    ProviderRefused = "E0416", 4;
    /// The provider names somebody who has no account at the server.
    NotBound = "E0417", 4;
    /// The server cannot be reached.
    ServerUnreachable = "E0412", 6;
    /// The store cannot be reached.
    StoreUnreachable = "E0413", 6;
    /// The server has too much to do.
    ServerBusy = "E0414", 6;
    /// Stored data is damaged.
    Damaged = "E0501", 8;
    /// Stored data is missing.
    Missing = "E0502", 8;
    /// The log is damaged.
    LogDamaged = "E0503", 8;
    /// The log forgot or changed what this device has seen.
    HistoryDiverged = "E0504", 8;
    /// The server shows different histories to different devices.
    HistoryForked = "E0508", 8;
    /// The store cannot do what is needed.
    StoreUnfit = "E0505", 1;
    /// What answers is not the store that it was.
    StoreReplaced = "E0506", 8;
    /// The exchange of the stores that agree was not finished.
    NotCarriedOver = "E0507", 6;
    /// Neither passphrase nor recovery key opens the workspace.
    WrongKey = "E0601", 12;
    /// This device does not have the keys of the workspace, or not the newest.
    KeysMissing = "E0602", 12;
    /// The locked keys in a store are not what a member has put there.
    KeysDamaged = "E0603", 8;
    /// The workspace is not encrypted, and only one that is was wanted.
    NotEncrypted = "E0604", 1;
    /// No device of the workspace has said which stores it has.
    HintRefused = "E0605", 8;
    /// Somebody has no identity yet, to which the keys of an encrypted workspace could be sealed.
    NoIdentity = "E0606", 1;
    /// The identity of somebody is not the one that was confirmed, or not that of the fingerprint.
    IdentityChanged = "E0607", 12;
    /// A defect of the program.
    Defect = "E0901", 1;
    /// Interrupted by the user.
    Interrupted = "E0130", 130;
    /// Ended by the system.
    Terminated = "E0143", 143;
}

/// A line of help: what to type, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Help {
    command: String,
    why: String,
}

/// Why a command did not do what was asked.
#[derive(Debug, Clone)]
pub(crate) struct CommandError {
    /// The code.
    pub(crate) code: Code,
    /// One sentence in the user's words.
    pub(crate) headline: String,
    /// What was seen.
    pub(crate) cause: Option<String>,
    /// What is safe.
    pub(crate) state: Option<String>,
    /// What to type.
    pub(crate) help: Vec<Help>,
}

impl CommandError {
    /// Makes an error without details.
    pub(crate) fn new(code: Code, headline: impl Into<String>) -> Self {
        Self { code, headline: headline.into(), cause: None, state: None, help: Vec::new() }
    }

    /// Adds what was seen.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl ToString) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds what is safe.
    #[must_use]
    pub(crate) fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Adds what to type.
    #[must_use]
    pub(crate) fn help(mut self, command: impl Into<String>, why: impl Into<String>) -> Self {
        self.help.push(Help { command: command.into(), why: why.into() });
        self
    }

    /// A usage error of our own.
    pub(crate) fn usage(headline: impl Into<String>) -> Self {
        Self::new(Code::Usage, headline)
    }

    /// Returns the text for people, without colours.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error[{}]: {}\n", self.code.text(), self.headline);
        for (label, line) in [("cause", &self.cause), ("state", &self.state)] {
            if let Some(line) = line {
                let _ = writeln!(text, "  {label}: {line}");
            }
        }
        let width = self.help.iter().map(|help| help.command.chars().count()).max().unwrap_or(0);
        for (number, help) in self.help.iter().enumerate() {
            let label = if number == 0 { " help:" } else { "      " };
            let line = if help.why.is_empty() {
                format!("  {label} {}", help.command)
            } else {
                format!("  {label} {:width$}   {}", help.command, help.why)
            };
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Returns the line for programs.
    pub(crate) fn json(&self) -> Value {
        let help: Vec<_> = self.help.iter().map(|help| help.command.clone()).collect();
        json!({
            "schema": "syncline.error/1",
            "type": "error",
            "code": self.code.text(),
            "exit": self.code.exit(),
            "headline": self.headline,
            "cause": self.cause,
            "state": self.state,
            "help": help,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_unique_and_explained() {
        let guide = include_str!("../../../docs/guide/errors.md");
        for (number, code) in Code::ALL.iter().enumerate() {
            assert!(guide.contains(code.text()), "{} is not in docs/guide/errors.md", code.text());
            assert!(Code::ALL[..number].iter().all(|other| other.text() != code.text()));
        }
    }

    #[test]
    fn texts_have_the_parts_in_order_and_help_lines_up() {
        let error = CommandError::new(Code::ServerUnreachable, "cannot reach the server http://x")
            .cause("connection refused")
            .state("nothing was lost")
            .help("syncline doctor", "looks for the reason")
            .help("syncline sync", "tries again");
        assert_eq!(
            error.text(),
            "error[E0412]: cannot reach the server http://x\n  \
             cause: connection refused\n  \
             state: nothing was lost\n   \
             help: syncline doctor   looks for the reason\n         \
             syncline sync     tries again\n"
        );
    }
}
