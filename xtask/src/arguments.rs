//! The words of a command line, taken one by one; what nobody took is an error.

use std::str::FromStr;

use crate::failure::{Context, Result, fail};

/// The words not yet taken.
#[derive(Debug, Clone)]
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// Starts with all words.
    pub fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Takes the first word.
    pub fn next_word(&mut self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.remove(0))
    }

    /// Takes all remaining words, for another program.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// Takes `name` if it stands anywhere, and says whether it did.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() != before
    }

    /// Takes `name VALUE` or `name=VALUE`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let with_equals = format!("{name}=");
        if let Some(at) = self.words.iter().position(|word| word.starts_with(&with_equals)) {
            return Ok(Some(self.words.remove(at)[with_equals.len()..].to_owned()));
        }
        let Some(at) = self.words.iter().position(|word| word == name) else { return Ok(None) };
        if at + 1 >= self.words.len() {
            return fail(format!("{name} needs a value"));
        }
        self.words.remove(at);
        Ok(Some(self.words.remove(at)))
    }

    /// Takes `name VALUE` and reads the value, or gives the default.
    pub fn value_or<T>(&mut self, name: &str, default: T) -> Result<T>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        match self.value(name)? {
            None => Ok(default),
            Some(text) => text.parse().context(format!("{name} {text}")),
        }
    }

    /// Ends the reading: a word that is left was not understood.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => fail(format!("'{word}' is not understood here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments::new(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn flags_and_values_are_taken_from_anywhere() {
        let mut taken = arguments(&["--runs", "5", "peers", "--quick", "--fs=tmpfs"]);
        assert!(taken.flag("--quick"));
        assert!(!taken.flag("--quick"));
        assert_eq!(taken.value_or("--runs", 3_u32), Ok(5));
        assert_eq!(taken.value("--fs"), Ok(Some("tmpfs".to_owned())));
        assert_eq!(taken.next_word(), Some("peers".to_owned()));
        assert_eq!(taken.finish(), Ok(()));
    }

    #[test]
    fn a_word_nobody_took_is_an_error() {
        assert!(arguments(&["--qick"]).finish().is_err());
    }

    #[test]
    fn a_missing_or_unreadable_value_is_an_error() {
        assert!(arguments(&["--runs"]).value("--runs").is_err());
        assert!(arguments(&["--runs", "many"]).value_or("--runs", 3_u32).is_err());
    }
}
