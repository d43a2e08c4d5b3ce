//! How files look: their length, their names, unfinished work, white space.

use super::{Finding, Repository};

const LINES_MAX: usize = 800;

/// Written in two halves, so that this file does not find itself.
const UNFINISHED: [&str; 3] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];

const TEXT_ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".ci/run"];

/// Checks that no Rust file is longer than a reader's patience.
pub fn rust_files_are_short(repository: &Repository) -> Vec<Finding> {
    let lengths = repository.texts_with("", ".rs").map(|(path, text)| (path, text.lines().count()));
    lengths
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| {
            Finding::new(path, format!("has {lines} lines, more than {LINES_MAX}"))
        })
        .collect()
}

/// Checks that a module is `foo.rs` beside `foo/`.
pub fn no_mod_rs(repository: &Repository) -> Vec<Finding> {
    repository
        .texts_with("", ".rs")
        .filter(|(path, _)| path.rsplit('/').next() == Some("mod.rs"))
        .map(|(path, _)| Finding::new(path, "must be foo.rs beside the folder foo/"))
        .collect()
}

/// Checks that nothing is left to be done later and no test is switched off.
pub fn nothing_is_unfinished(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.texts_with("", ".rs") {
        for (index, line) in text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
                findings.push(Finding::at_line(path, index, format!("holds `{word}`")));
            }
        }
    }
    findings
}

/// Checks that no line holds a tab or ends in white space.
pub fn whitespace_is_clean(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let texts = repository
        .texts()
        .filter(|(path, _)| TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending)));
    for (path, text) in texts {
        for (index, line) in text.lines().enumerate() {
            if line.contains('\t') {
                findings.push(Finding::at_line(path, index, "holds a tab"));
            }
            if line.ends_with(' ') {
                findings.push(Finding::at_line(path, index, "ends in a space"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(path: &str, text: &str) -> Repository {
        Repository::from_texts(&[(path, text)])
    }

    #[test]
    fn a_file_of_801_lines_is_found_and_one_of_800_is_not() {
        assert_eq!(rust_files_are_short(&repository("a.rs", &"x\n".repeat(801))).len(), 1);
        assert_eq!(rust_files_are_short(&repository("a.rs", &"x\n".repeat(800))), []);
    }

    #[test]
    fn a_mod_rs_is_found() {
        assert_eq!(no_mod_rs(&repository("crates/a/src/b/mod.rs", "")).len(), 1);
        assert_eq!(no_mod_rs(&repository("crates/a/src/b_mod.rs", "")), []);
    }

    #[test]
    fn every_unfinished_word_is_found() {
        for word in UNFINISHED {
            assert_eq!(nothing_is_unfinished(&repository("a.rs", &format!("  {word}"))).len(), 1);
        }
        assert_eq!(nothing_is_unfinished(&repository("a.rs", "// done")), []);
    }

    #[test]
    fn tabs_and_trailing_spaces_are_found() {
        assert_eq!(whitespace_is_clean(&repository("a.md", "a\tb\nc \n")).len(), 2);
        assert_eq!(whitespace_is_clean(&repository("a.md", "a b\nc\n")), []);
    }
}
