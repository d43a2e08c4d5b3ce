//! What appears where: answers on stdout, everything else on stderr; colours and symbols where they are understood.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

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

    /// Tells whether letters beyond ASCII can be seen.
    pub(crate) fn is_unicode(&self) -> bool {
        self.is_unicode
    }

    /// Tells whether a picture of squares can be seen.
    pub(crate) fn draws(&self) -> bool {
        self.is_unicode && self.colors_out && !self.is_json
    }

    /// Prints a line of the answer.
    pub(crate) fn answer(&self, line: impl AsRef<str>) {
        if !self.is_json {
            print(&harmless(line.as_ref()));
        }
    }

    /// Prints a line that says what was done; not where only answers are wanted.
    pub(crate) fn say(&self, symbol: Symbol, line: impl AsRef<str>) {
        if !self.is_json && !self.is_quiet {
            print(&harmless(&format!("{} {}", self.symbol(symbol), line.as_ref())));
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
            eprint(&harmless(&format!("{mark} {}", line.as_ref())));
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
        let text = harmless(&text);
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

    /// Gets a line that somebody pastes, from the terminal or from stdin, but does not wait for it for ever.
    pub(crate) fn pasted(&self, question: &str, wait_max: Duration) -> Result<String> {
        eprint_part(&format!("{question}: "));
        let (sender, pasted) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(system::read_line(false)));
        match pasted.recv_timeout(wait_max) {
            Ok(Ok(line)) if !line.is_empty() => Ok(line),
            Ok(Err(error)) => Err(CommandError::usage("nothing can be read").cause(error)),
            _ => Err(CommandError::new(Code::WouldAsk, "nothing was pasted")
                .state("nothing was changed")),
        }
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

/// Takes out of a text what does something to a terminal, or turns letters round, but for colours: names and messages come from others, too.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter: char| {
        (letter.is_control() && !"\n\t".contains(letter))
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\u{1b}[");
    let shown = |part: &str| part.replace(is_harmful, "\u{fffd}");
    let mut clean = shown(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
        let is_color = end.is_some_and(|end| part[end..].starts_with('m'));
        clean += if is_color { "\u{1b}[" } else { "\u{fffd}[" };
        clean += &shown(part);
    }
    Cow::Owned(clean)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_named_does_nothing_to_a_terminal() {
        let title = "x\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[31mred\u{1b}[0m\u{1b}[";
        let shown = "x\u{fffd}]0;title\u{fffd}\u{fffd}[2J\u{1b}[31mred\u{1b}[0m\u{fffd}[";
        assert_eq!(harmless(title), shown);
        assert_eq!(harmless("a\u{202e}b\u{9b}c\rd"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        for text in ["", "two\nlines\tand \u{1b}[30;107mblack\u{1b}[0m", "ümläut ✓"] {
            assert_eq!(harmless(text), text);
        }
        assert!(matches!(harmless("plain"), Cow::Borrowed(_)));
    }
}
