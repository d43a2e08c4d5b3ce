//! The lints of each crate: those of the workspace, or a copy of them with one exception, since cargo lets a crate take all or none.

use super::{Finding, Repository};

/// What a copy may say in place of what the workspace says: `forbid` cannot be lifted in one place.
const EXCEPTION: [&str; 2] = ["unsafe_code = \"forbid\"", "unsafe_code = \"deny\""];

/// Checks that every crate has the lints of the workspace, as they are now.
pub fn copied_lints_are_those_of_the_workspace(repository: &Repository) -> Vec<Finding> {
    let workspace = repository.text("Cargo.toml").unwrap_or_default();
    let mut findings = Vec::new();
    for (path, text) in repository.texts_with("", "/Cargo.toml") {
        if section(text, "[lints]").contains(&"workspace = true") {
            continue;
        }
        for kind in ["rust", "clippy"] {
            let wanted = section(workspace, &format!("[workspace.lints.{kind}]"));
            let copied = section(text, &format!("[lints.{kind}]"));
            let is_same =
                |wanted: &str, copied: &str| wanted == copied || [wanted, copied] == EXCEPTION;
            for line in &wanted {
                if !copied.iter().any(|copied| is_same(line, copied)) {
                    let message = format!("[lints.{kind}] lacks `{line}` of the workspace");
                    findings.push(Finding::new(path, message));
                }
            }
            for line in &copied {
                if !wanted.iter().any(|wanted| is_same(wanted, line)) {
                    let message = format!("[lints.{kind}] has `{line}`, unlike the workspace");
                    findings.push(Finding::new(path, message));
                }
            }
        }
    }
    findings
}

/// Returns what a section of a manifest says, line by line, without comments.
fn section<'text>(text: &'text str, heading: &str) -> Vec<&'text str> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n\
        missing_docs = \"warn\"\n\n[workspace.lints.clippy]\ntodo = \"warn\"\n";

    fn findings(manifest: &str) -> Vec<String> {
        let files = [("Cargo.toml", WORKSPACE), ("crates/one/Cargo.toml", manifest)];
        let found = copied_lints_are_those_of_the_workspace(&Repository::from_texts(&files));
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lints_of_the_workspace_or_a_copy_with_the_exception_are_fine() {
        assert!(findings("[lints]\nworkspace = true\n").is_empty());
        let copy = "# Why.\n[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"\n\n\
            [lints.clippy]\ntodo = \"warn\"\n\n[dependencies]\none = \"1\"\n";
        assert!(findings(copy).is_empty());
    }

    #[test]
    fn copy_that_lacks_a_lint_or_has_another_is_found() {
        let copy = "[lints.rust]\nunsafe_code = \"allow\"\nmissing_docs = \"warn\"\n";
        assert_eq!(
            findings(copy),
            [
                "[lints.rust] lacks `unsafe_code = \"forbid\"` of the workspace",
                "[lints.rust] has `unsafe_code = \"allow\"`, unlike the workspace",
                "[lints.clippy] lacks `todo = \"warn\"` of the workspace",
            ]
        );
        assert_eq!(findings("").len(), 3, "a crate without any");
    }
}
