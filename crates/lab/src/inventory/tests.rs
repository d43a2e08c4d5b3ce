//! The list and the folders are equal, and nothing is missing in either.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::files;
use crate::notes as notes_of;

/// The tables and figures that are to be measured, paper by paper.
const WANTED: [(&str, &str); 5] = [
    (STACKSYNC, "figures 5, 6a, 6b and 7"),
    (METASYNC, "figures 8, 9 and 10, tables 5, 6 and 7"),
    (WEBR2SYNC, "figures 2 to 9 and 13 to 22"),
    ("Syncany thesis (2011)", "tables 6.2 to 6.9, figures 6.6 to 6.25, appendices D to F"),
    ("BenchCloud (2014)", "figures 4.1 to 4.10, tables 4.2 to 4.7"),
];

/// The configuration files that the BenchCloud thesis prints: no table, and no figure.
const OTHERS: [&str; 1] = ["benchcloud"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// Reads "figures 4.1 to 4.3, table 5" as the names of each.
fn read(words: &str) -> Vec<String> {
    let (mut kind, mut names, mut is_range) = (None, Vec::<(String, String)>::new(), false);
    for word in words.split_whitespace().map(|word| word.trim_end_matches([',', '.', ';', ':'])) {
        match word {
            "figure" | "figures" => kind = Some("figure"),
            "table" | "tables" => kind = Some("table"),
            "appendix" | "appendices" => kind = Some("appendix"),
            "and" => {}
            "to" => is_range = true,
            _ => {
                let is_number = word.starts_with(|first: char| first.is_ascii_digit());
                let is_letter = kind == Some("appendix") && word.len() == 1;
                match kind.filter(|_| is_number || is_letter) {
                    Some(kind) if is_range => {
                        let (_, first) = names.last().unwrap().clone();
                        names.extend(
                            between(&first, word).into_iter().map(|it| (kind.to_owned(), it)),
                        );
                    }
                    Some(kind) => names.push((kind.to_owned(), word.to_owned())),
                    None => kind = None,
                }
                is_range = false;
            }
        }
    }
    names.into_iter().map(|(kind, number)| format!("{kind} {number}")).collect()
}

/// Returns what comes after the first, the last with it.
fn between(first: &str, last: &str) -> Vec<String> {
    let split = |name: &str| match name.rsplit_once('.') {
        Some((before, number)) => (format!("{before}."), number.to_owned()),
        None => (String::new(), name.to_owned()),
    };
    let ((before, first), (_, last)) = (split(first), split(last));
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first), Ok(last)) => (first + 1..=last).map(|it| format!("{before}{it}")).collect(),
        _ => {
            let letter = |name: &str| name.chars().next().unwrap();
            (letter(&first)..=letter(&last)).skip(1).map(String::from).collect()
        }
    }
}

#[test]
fn every_table_and_figure_is_named_exactly_once() {
    let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in all() {
        assert!(PAPERS.contains(&entry.paper), "{entry:?}");
        named.entry(entry.paper).or_default().extend(read(entry.shows));
    }
    for names in named.values_mut() {
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "one of them is named twice: {names:?}");
    }
    for (paper, wanted) in WANTED {
        let mut wanted = read(wanted);
        wanted.sort();
        assert_eq!(named[paper], wanted, "{paper}");
    }
}

#[test]
fn a_name_that_is_not_there_is_told_what_it_is_like() {
    for (name, like) in
        [("syncany-chunkin", "syncany-chunking"), ("metasync-8", "metasync-figure-8")]
    {
        let error = named(name).unwrap_err();
        assert!(
            matches!(error, LabError::NoSuchExperiment { nearest, .. } if nearest == like),
            "{error}"
        );
    }
    assert!(matches!(named("metasync-figure-8").unwrap().how, How::SourceTree(_)));
}

#[test]
fn what_stands_in_words_is_read_as_numbers() {
    let words = "the pause of section 6.4; tables 6.2 to 6.4 and 6.8, figure 6a, appendices D to F";
    let names = ["table 6.2", "table 6.3", "table 6.4", "table 6.8", "figure 6a"];
    let letters = ["appendix D", "appendix E", "appendix F"];
    assert_eq!(read(words), [&names[..], &letters].concat());
}

#[test]
fn every_experiment_has_its_folder_and_every_folder_its_experiment() {
    let mut names: Vec<&str> = all().iter().map(|entry| entry.name).chain(OTHERS).collect();
    names.sort_unstable();
    let mut folders = files::folders(&folder()).unwrap();
    folders.sort();
    assert_eq!(folders, names);
    for entry in all() {
        let has =
            |file: &str| files::look(&folder().join(entry.name).join(file)).unwrap().is_some();
        assert!(has("README.md") && has("expected.csv"), "{}", entry.name);
    }
}

#[test]
fn notes_are_in_the_program_with_their_drawings_and_say_the_same_command() {
    for entry in all() {
        let notes = notes(entry.name).unwrap_or_else(|| panic!("{} has no notes here", entry.name));
        let title = notes_of::title(notes);
        assert!(!title.is_empty() && notes.contains("says.**"), "{}", entry.name);
        for path in notes_of::images(notes) {
            assert!(drawing(entry.name, path).is_some(), "{}: {path}", entry.name);
        }
        let command = match entry.how {
            How::Here => format!("syncline lab run {}", entry.name),
            How::SourceTree(command) => command.to_owned(),
        };
        assert!(notes.contains(&command), "{} does not say: {command}", entry.name);
    }
}
