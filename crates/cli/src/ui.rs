//! What appears where: answers on stdout, everything else on stderr; colours and symbols where they are understood.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde_json::Value;

use crate::arguments::{ColorChoice, GlobalFlags};
use crate::error::{Code, CommandError, Result};
use crate::home::file_error;
use crate::system::{self, Variables};

/// The question for what a second factor wants.
pub(crate) const ANY_CODE: &str = "Code that the app shows, or a recovery code";

/// A symbol, for terminals that have it and those that have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// Done.
    Done,
    /// Needs attention.
    Attention,
    /// From here to the log.
    Sent,
    /// From the log to here.
    Received,
}

/// A colour by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Done.
    Good,
    /// Needs attention.
    Attention,
    /// Failed.
    Bad,
    /// A path, or something to type.
    Word,
    /// Detail.
    Dim,
}

/// Where a user looks.
#[derive(Debug)]
pub(crate) struct Ui {
    is_json: bool,
    is_quiet: bool,
    verbosity: u8,
    colors_out: bool,
    colors_err: bool,
    is_unicode: bool,
    shows_progress: bool,
    may_ask: bool,
    says_yes: bool,
    /// Lines that wait until a JSON answer is complete.
    notes: RefCell<Vec<String>>,
}

impl Ui {
    /// Decides how to speak.
    pub(crate) fn new(flags: &GlobalFlags, variables: &Variables) -> Self {
        let is_dumb = variables.get("TERM").is_some_and(|term| term == "dumb");
        let colored = |is_terminal: bool| match flags.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_dumb && variables.get("NO_COLOR").is_none(),
        };
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variables.get(name));
        let locale =
            locale.map(|locale| locale.to_string_lossy().to_lowercase()).unwrap_or_default();
        let is_attended = variables.get("CI").is_none();
        Self {
            is_json: flags.json,
            is_quiet: flags.quiet,
            verbosity: flags.verbose,
            colors_out: colored(out),
            colors_err: colored(err),
            is_unicode: locale.contains("utf-8") || locale.contains("utf8"),
            shows_progress: err && !is_dumb && is_attended && !flags.no_progress && !flags.quiet,
            may_ask: system::stdin_is_terminal() && err && is_attended && !flags.no_input,
            says_yes: flags.yes,
            notes: RefCell::default(),
        }
    }

    /// Tells whether answers are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Tells whether somebody is there to answer.
    pub(crate) fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Returns how much more to say.
    pub(crate) fn verbosity(&self) -> u8 {
        self.verbosity
    }

    /// Tells whether progress is shown.
    pub(crate) fn shows_progress(&self) -> bool {
        self.shows_progress
    }

    /// Tells whether a picture of squares can be seen.
    pub(crate) fn draws(&self) -> bool {
        self.is_unicode && self.colors_out && !self.is_json
    }

    /// Prints a line of the answer.
    pub(crate) fn answer(&self, line: impl AsRef<str>) {
        if !self.is_json {
            print(line.as_ref());
        }
    }

    /// Prints a line that says what was done; not where only answers are wanted.
    pub(crate) fn say(&self, symbol: Symbol, line: impl AsRef<str>) {
        if !self.is_json && !self.is_quiet {
            print(&format!("{} {}", self.symbol(symbol), line.as_ref()));
        }
    }

    /// Prints a line of JSON.
    pub(crate) fn json(&self, value: &Value) {
        if self.is_json {
            print(&value.to_string());
        }
    }

    /// Prints a note on stderr.
    pub(crate) fn note(&self, line: impl AsRef<str>) {
        if !self.is_quiet {
            let mark = if self.colors_err { "\u{1b}[33m!\u{1b}[0m" } else { "!" };
            eprint(&format!("{mark} {}", line.as_ref()));
        }
        self.notes.borrow_mut().push(line.as_ref().to_owned());
    }

    /// Returns the notes so far, for a JSON answer.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// Prints an error: for people on stderr; for programs as the last line of stdout.
    pub(crate) fn error(&self, error: &CommandError) {
        if self.is_json {
            print(&error.json().to_string());
            return;
        }
        let text = error.text();
        if !self.colors_err {
            eprint(text.trim_end());
            return;
        }
        let (head, rest) = text.split_once(": ").unwrap_or((&text, ""));
        eprint(&format!("\u{1b}[31m{head}\u{1b}[0m: {}", rest.trim_end()));
    }

    /// Returns a symbol, in its colour.
    pub(crate) fn symbol(&self, symbol: Symbol) -> String {
        let (unicode, ascii, paint) = match symbol {
            Symbol::Done => ("✓", "ok", Paint::Good),
            Symbol::Attention => ("!", "!", Paint::Attention),
            Symbol::Sent => ("↑", "^", Paint::Good),
            Symbol::Received => ("↓", "v", Paint::Good),
        };
        self.paint(paint, if self.is_unicode { unicode } else { ascii })
    }

    /// Colours a word of an answer.
    pub(crate) fn paint(&self, paint: Paint, word: &str) -> String {
        let number = match paint {
            Paint::Good => 32,
            Paint::Attention => 33,
            Paint::Bad => 31,
            Paint::Word => 34,
            Paint::Dim => 2,
        };
        if self.colors_out { format!("\u{1b}[{number}m{word}\u{1b}[0m") } else { word.to_owned() }
    }

    /// Asks for a yes. Without a terminal nobody is asked: the error names the flag.
    pub(crate) fn confirm(&self, question: &str) -> Result<()> {
        match self.says_yes {
            true => Ok(()),
            false => self.compare(question, ("--yes", "answers yes")),
        }
    }

    /// Asks for a yes of somebody who has compared something, which a flag that was given before cannot have done. Without a terminal the
    /// error names what says it.
    pub(crate) fn compare(&self, question: &str, (command, what): (&str, &str)) -> Result<()> {
        if !self.may_ask {
            return Err(CommandError::new(
                Code::WouldAsk,
                format!("{question} Nobody is there to answer"),
            )
            .state("nothing was changed")
            .help(command, what));
        }
        eprint_part(&format!("{question} [y/N] "));
        let answer = system::read_line(false).unwrap_or_default();
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(CommandError::new(Code::WouldAsk, "not confirmed").state("nothing was changed"))
    }

    /// Gets a password: from stdin where the flag says so, else from the terminal.
    pub(crate) fn password(&self, is_from_stdin: bool, question: &str) -> Result<String> {
        let failed =
            |error: io::Error| CommandError::usage("the password cannot be read").cause(error);
        let password = if is_from_stdin {
            system::read_stdin_secret().map_err(failed)?
        } else if self.may_ask {
            eprint_part(&format!("{question}: "));
            let password = system::read_line(true).map_err(failed)?;
            eprint("");
            password
        } else {
            return Err(CommandError::new(
                Code::WouldAsk,
                "a password is needed, and nobody is there to type it",
            )
            .help("--password-stdin", "reads it from stdin"));
        };
        if password.is_empty() {
            return Err(CommandError::usage("the password is empty"));
        }
        Ok(password)
    }

    /// Gets a code of a second factor: from a file where one is named, else from the terminal.
    pub(crate) fn code(&self, file: Option<&Path>, question: &str) -> Result<String> {
        if let Some(file) = file {
            let text = system::read_text(file).map_err(|error| file_error(file, &error))?;
            return text.ok_or_else(|| {
                CommandError::usage(format!("there is no file {} with a code", file.display()))
            });
        }
        if !self.may_ask {
            return Err(CommandError::new(
                Code::WouldAsk,
                "a code is needed, and nobody is there to type it",
            )
            .state("nothing was changed")
            .help("--code-file FILE", "reads it from a file"));
        }
        eprint_part(&format!("{question}: "));
        system::read_line(false)
            .map_err(|error| CommandError::usage("the code cannot be read").cause(error))
    }
}

/// Prints a line on stdout. A reader that has gone, as in `| head`, is no error.
pub(crate) fn print(line: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}");
    let _ = stdout.flush();
}

/// Prints a line on stderr.
pub(crate) fn eprint(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn eprint_part(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}
