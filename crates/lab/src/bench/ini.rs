//! The configuration files of BenchCloud (Wang 2014, section 4.1 and appendix A), read as they are.
//!
//! A value goes on in the lines below it, until a line is a key, a section or a comment: the thesis prints long values so, with and without
//! spaces before. What BenchCloud read wrongly is read as it was meant: `delete = False` keeps files, a key that nobody knows is an error, and
//! `repeat_str` can be set (its program is described in section 3.4).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::plan::{Files, Kind, Operation, Pause, Plan, Target, suggestion};
use crate::error::LabError;

/// The sections and keys there are.
const KNOWN: [(&str, &[&str]); 6] = [
    (
        "test",
        &[
            "description",
            "times",
            "sleep",
            "sleep_seconds",
            "random_start_sleep_min",
            "random_start_sleep_max",
            "remote_dir",
            "local_dir",
        ],
    ),
    ("logging", &["enabled", "log_file"]),
    ("driver", &["class"]),
    ("operator", &["class", "operation_method", "operation_method_params"]),
    (
        "file_generator",
        &["class", "directory", "prefix", "suffix", "delete", "size", "percent", "repeat_str"],
    ),
    ("concurrent", &["threads"]),
];

/// What a file that was made is called in its parameters.
const GENERATED: &str = "<generated_file.name>";

/// Reads a file.
///
/// # Errors
/// [`LabError::Benchmark`] names the line or the key.
pub(super) fn parse(text: &str) -> Result<Plan, LabError> {
    let values = Values::of(text)?;
    let operator = values.get("operator", "class").map(last_word);
    if let Some(other) = operator.filter(|class| *class != "Uploader") {
        return Err(refusal(format!(
            "[operator] class: '{other}' is not known, but 'Uploader' is"
        )));
    }
    let is_upload = operator.is_some();
    if !is_upload {
        values.needed("test", "remote_dir")?;
    }
    let (directory, name) = match values.get("operator", "operation_method_params") {
        Some(json) => destination(json)?,
        None => (values.get("test", "remote_dir").unwrap_or_default().to_owned(), None),
    };
    if let Some(method) = values.get("operator", "operation_method").filter(|it| *it != "upload") {
        return Err(refusal(format!("operation_method: '{method}' is not known, but 'upload' is")));
    }
    let driver = last_word(values.needed("driver", "class")?);
    // Of one driver a path is a folder of this computer; the others need a target instead of their cloud.
    let is_folder = driver == "LocalFSDriver";
    let (folder, directory) =
        if is_folder { (Some(PathBuf::from(directory)), String::new()) } else { (None, directory) };
    let defaults = Files::default();
    let files = if is_upload {
        Files {
            kind: kind(values.needed("file_generator", "class")?)?,
            size: values.number("file_generator", "size")?.unwrap_or(defaults.size),
            common: values.number("file_generator", "percent")?.unwrap_or(0.0),
            repeat: values
                .get("file_generator", "repeat_str")
                .map_or(defaults.repeat, str::to_owned),
            prefix: values.get("file_generator", "prefix").unwrap_or_default().to_owned(),
            suffix: values.get("file_generator", "suffix").unwrap_or_default().to_owned(),
            keep_in: values.kept_in()?,
            edit: defaults.edit,
            trace: None,
        }
    } else {
        defaults
    };
    let times = values.number("test", "times")?.unwrap_or(1);
    let threads: usize = values.number("concurrent", "threads")?.unwrap_or(1);
    Plan {
        description: values.get("test", "description").unwrap_or_default().replace('\n', " "),
        operation: if is_upload { Operation::Upload } else { Operation::Download },
        times,
        // More threads than operations have nothing to do.
        threads: if is_upload {
            threads.min(usize::try_from(times).unwrap_or(threads))
        } else {
            threads
        },
        warm_up: 0,
        repetitions: 1,
        seed: 2014,
        pause: values.pause()?,
        start_within: values.start()?,
        target: Target {
            folder,
            directory: directory.trim_matches('/').to_owned(),
            name,
            local_directory: values.get("test", "local_dir").map(PathBuf::from),
            ..Target::default()
        },
        files,
        mix: None,
        capture: None,
        processes: Vec::new(),
        log: values.log()?,
    }
    .checked()
}

fn refusal(what: String) -> LabError {
    LabError::Benchmark { what }
}

/// Reads `{"remote_dir": ...}` or `{"remote_filename": ...}`.
fn destination(json: &str) -> Result<(String, Option<String>), LabError> {
    let read: BTreeMap<String, String> = serde_json::from_str(json)
        .map_err(|error| refusal(format!("operation_method_params: {error}")))?;
    let known = ["local_filename", "remote_dir", "remote_filename"];
    if let Some(key) = read.keys().find(|key| !known.contains(&key.as_str())) {
        let help = suggestion(key, &known);
        return Err(refusal(format!("operation_method_params: '{key}' is not known{help}")));
    }
    if !read.get("local_filename").is_some_and(|name| name.eq_ignore_ascii_case(GENERATED)) {
        return Err(refusal(format!("operation_method_params: local_filename is {GENERATED}")));
    }
    match (read.get("remote_dir"), read.get("remote_filename")) {
        (Some(directory), None) => Ok((directory.clone(), None)),
        (None, Some(path)) => {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            Ok((directory.to_owned(), Some(name.to_owned())))
        }
        _ => Err(refusal("operation_method_params: remote_dir or remote_filename".to_owned())),
    }
}

/// Reads which generator it is.
fn kind(class: &str) -> Result<Kind, LabError> {
    const CLASSES: [(&str, Kind); 4] = [
        ("RandomFileGenerator", Kind::Random),
        ("IdenticalFileGenerator", Kind::Identical),
        ("SparseFileGenerator", Kind::Sparse),
        ("DeltaFileGenerator", Kind::Delta),
    ];
    let word = last_word(class);
    let found = CLASSES.iter().find(|(name, _)| *name == word);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let help = suggestion(word, &CLASSES.map(|(name, _)| name));
        refusal(format!("[file_generator] class: '{word}' is not known{help}"))
    })
}

/// Returns the name of a class without the path of its module.
fn last_word(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class).trim()
}

/// All values of a file.
#[derive(Debug, Default)]
struct Values(BTreeMap<(String, String), String>);

impl Values {
    fn of(text: &str) -> Result<Self, LabError> {
        let mut values = Self::default();
        let mut section: Option<(&str, &[&str])> = None;
        let mut last: Option<(String, String)> = None;
        for (number, line) in text.lines().enumerate() {
            let (line, at) = (line.trim(), number + 1);
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let known = KNOWN.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                    let help = suggestion(name, &KNOWN.map(|(name, _)| name));
                    refusal(format!("line {at}: there is no section [{name}]{help}"))
                })?;
                (section, last) = (Some(*known), None);
                continue;
            }
            if let Some((key, value)) = key_and_value(line) {
                let Some((section, keys)) = section else {
                    return Err(refusal(format!("line {at}: '{key}' is in no section")));
                };
                if !keys.contains(&key) {
                    let help = suggestion(key, keys);
                    return Err(refusal(format!(
                        "line {at}: [{section}] has no key '{key}'{help}"
                    )));
                }
                let name = (section.to_owned(), key.to_owned());
                if values.0.insert(name.clone(), value.to_owned()).is_some() {
                    return Err(refusal(format!("line {at}: '{key}' is there twice")));
                }
                last = Some(name);
            } else if let Some(value) = last.as_ref().and_then(|name| values.0.get_mut(name)) {
                if !value.is_empty() {
                    value.push('\n');
                }
                value.push_str(line);
            } else {
                return Err(refusal(format!("line {at}: '{line}' belongs to no key")));
            }
        }
        Ok(values)
    }

    fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.0.get(&(section.to_owned(), key.to_owned())).map(String::as_str)
    }

    fn needed(&self, section: &str, key: &str) -> Result<&str, LabError> {
        self.get(section, key)
            .ok_or_else(|| refusal(format!("section [{section}] needs a key '{key}'")))
    }

    fn number<T: std::str::FromStr>(
        &self,
        section: &str,
        key: &str,
    ) -> Result<Option<T>, LabError> {
        let Some(text) = self.get(section, key) else { return Ok(None) };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| refusal(format!("[{section}] {key}: '{text}' is no such number")))
    }

    /// Reads what Python's configuration parser takes for true or false.
    fn truth(&self, section: &str, key: &str) -> Result<Option<bool>, LabError> {
        let Some(text) = self.get(section, key) else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "1" | "yes" | "true" | "on" => Ok(Some(true)),
            "0" | "no" | "false" | "off" => Ok(Some(false)),
            _ => Err(refusal(format!("[{section}] {key}: '{text}' is neither True nor False"))),
        }
    }

    fn pause(&self) -> Result<Pause, LabError> {
        if self.truth("test", "sleep")? != Some(true) {
            return Ok(Pause::None);
        }
        self.needed("test", "sleep_seconds")?;
        Ok(self.number("test", "sleep_seconds")?.map_or(Pause::None, Pause::Fixed))
    }

    fn start(&self) -> Result<Option<(f64, f64)>, LabError> {
        let from = self.number("test", "random_start_sleep_min")?;
        let to = self.number("test", "random_start_sleep_max")?;
        if from.is_some() != to.is_some() {
            let both = "random_start_sleep_min and random_start_sleep_max belong together";
            return Err(refusal(both.to_owned()));
        }
        Ok(from.zip(to))
    }

    fn kept_in(&self) -> Result<Option<PathBuf>, LabError> {
        if self.truth("file_generator", "delete")? != Some(false) {
            return Ok(None);
        }
        let folder = self.get("file_generator", "directory").filter(|folder| !folder.is_empty());
        Ok(Some(folder.map_or_else(std::env::temp_dir, PathBuf::from)))
    }

    fn log(&self) -> Result<Option<PathBuf>, LabError> {
        if self.truth("logging", "enabled")? != Some(true) {
            return Ok(None);
        }
        self.needed("logging", "log_file").map(|path| Some(path.into()))
    }
}

/// Takes a line apart where it is a key and its value. What has no name before its `=` goes on with the value above it.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_key.then(|| (key, value.trim()))
}
