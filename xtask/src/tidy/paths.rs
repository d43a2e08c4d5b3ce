//! Every path that a document names exists.

use super::{Finding, Repository};

const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GOALS.md"];
const FOLDERS: [&str; 6] = ["crates", "docs", "xtask", "experiments", "web", ".ci"];
const FILE_ENDINGS: [&str; 3] = [".rs", ".md", ".toml"];

/// Checks that every path in backticks exists, written from the root, from the document's folder,
/// or from a room (`sync/plan.rs` is `crates/sync/src/plan.rs`).
///
/// What has neither the ending of a file nor begins with a folder of the repository is no such path. Anything with a placeholder (`<name>`, `{id}`, `*`), a space, a scheme or a leading slash is
/// not a path of the repository and not checked.
pub fn named_paths_exist(repository: &Repository) -> Vec<Finding> {
    let documents = repository.texts().filter(|(path, _)| {
        DOCUMENTS.contains(path) || (path.starts_with("docs/") && path.ends_with(".md"))
    });
    let mut findings = Vec::new();
    for (document, text) in documents {
        let mut in_block = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            let words = line.split('`').skip(1).step_by(2).filter(|_| !in_block);
            for path in
                words.flat_map(expand_braces).filter(|word| looks_like_a_path(repository, word))
            {
                if !exists(repository, document, &path) {
                    let message = format!(
                        "names `{path}`, which does not exist (if it is no path of this \
                         repository, write a placeholder such as <name> into it)"
                    );
                    findings.push(Finding::at_line(document, index, message));
                }
            }
        }
    }
    findings
}

/// `a/{b,c}.md` names two paths; `a/{id}` none.
fn expand_braces(word: &str) -> Vec<String> {
    let parts = word.split_once('{').and_then(|(start, rest)| {
        let (choices, end) = rest.split_once('}')?;
        choices.contains(',').then_some((start, choices, end))
    });
    let Some((start, choices, end)) = parts else { return vec![word.to_owned()] };
    choices.split(',').map(|choice| format!("{start}{}{end}", choice.trim())).collect()
}

/// What has the ending of a file, or begins with a folder at the root or with a room. Anything else with a slash is
/// somebody else's path: a key in a store, a file on a device, a schema.
fn looks_like_a_path(repository: &Repository, word: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "._-/".contains(character);
    let is_file = FILE_ENDINGS.iter().any(|end| word.ends_with(end) && word != *end);
    let is_in_folder = word.split_once('/').is_some_and(|(first, _)| {
        FOLDERS.contains(&first) || repository.has(&format!("crates/{first}"))
    });
    (is_file || is_in_folder)
        && word.chars().all(plain)
        && !word.starts_with('/')
        && !word.starts_with("..")
}

fn exists(repository: &Repository, document: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let in_room = path
        .split_once('/')
        .map(|(room, rest)| [format!("crates/{room}/src/{rest}"), format!("crates/{path}")]);
    repository.has(path)
        || repository.has(&format!("{folder}/{path}"))
        || in_room.is_some_and(|places| places.iter().any(|place| repository.has(place)))
        || (!path.contains('/') && repository.has_file_named(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let files = [
            ("docs/design/sync.md", text),
            ("docs/design/pack-format.md", ""),
            ("crates/sync/src/plan.rs", ""),
            ("deny.toml", ""),
        ];
        named_paths_exist(&Repository::from_texts(&files))
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn paths_from_the_root_the_folder_and_a_room_are_found() {
        let text = "`crates/sync` `docs/design/` `pack-format.md` `sync/plan.rs` `plan.rs` \
                    `deny.toml` `docs/design/{sync,pack-format}.md`";
        assert_eq!(findings(text), [] as [&str; 0]);
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        for wrong in ["crates/sink", "sync/plann.rs", "plann.rs", "docs/design/{sync,gone}.md"] {
            assert_eq!(findings(&format!("see `{wrong}`")).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_path_of_the_repository_is_left_alone() {
        let text = "`/healthz` `log/<slot>/r0` `GET /v1/packs` `~/x.toml` `http://a/b` `{id}/x` \
                    `--at vN|TIME` `*.rs` `packs/ab/abcdef` `.syncline/root` `syncline.sync/1`\n```\ncrates/sink\n`crates/sink`\n```\n";
        assert_eq!(findings(text), [] as [&str; 0]);
    }
}
