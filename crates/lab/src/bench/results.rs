//! Results of benchmarks that lie in folders: which there are, drawn again, and side by side.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::outcome::{Outcome, Record, SECONDS, SPREAD};
use super::plan::Operation;
use super::report;
use crate::error::LabError;
use crate::files;
use crate::page::Page;
use crate::plot::{Plot, Series};

/// The numbers of a benchmark, and every operation.
const NUMBERS: &str = "benchmark.json";
const OPERATIONS: &str = "benchmark.csv";

/// The answers of a probe.
const PROBE: &str = "probe.json";

/// The result of one benchmark, as it lies in a folder.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The folder.
    pub folder: PathBuf,
    /// The numbers.
    pub numbers: Value,
}

/// What lies in a folder of results.
#[derive(Debug, Clone)]
pub enum Found {
    /// A benchmark.
    Benchmark(Kept),
    /// What a probe has found out, of which program.
    Probe {
        /// The folder.
        folder: PathBuf,
        /// The program.
        name: String,
    },
}

/// Lists the results in a folder, in the order of their names, which is that of their times.
///
/// # Errors
/// [`LabError::Read`], [`LabError::NoResult`] for one that cannot be understood.
pub fn list(out: &Path) -> Result<Vec<Found>, LabError> {
    let mut found = Vec::new();
    if files::look(out)?.is_none() {
        return Ok(found);
    }
    let mut names = files::folders(out)?;
    names.sort();
    for name in names {
        let folder = out.join(name);
        if files::look(&folder.join(NUMBERS))?.is_some() {
            found.push(Found::Benchmark(Kept::open(&folder)?));
        } else if files::look(&folder.join(PROBE))?.is_some() {
            let numbers = json(&folder.join(PROBE))?;
            let name = numbers["name"].as_str().unwrap_or_default().to_owned();
            found.push(Found::Probe { folder, name });
        }
    }
    Ok(found)
}

impl Kept {
    /// Opens the result of a benchmark.
    ///
    /// # Errors
    /// [`LabError::NoResult`].
    pub fn open(folder: &Path) -> Result<Self, LabError> {
        let numbers = json(&folder.join(NUMBERS))?;
        if !numbers["operations"].is_array() {
            return Err(no_result(&folder.join(NUMBERS), "it has no operations"));
        }
        Ok(Self { folder: folder.to_owned(), numbers })
    }

    /// Returns what it is called in tables.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or(self.folder.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Reads every operation again.
    ///
    /// # Errors
    /// [`LabError::Read`], [`LabError::NoResult`] names the line.
    pub fn outcome(&self) -> Result<Outcome, LabError> {
        let path = self.folder.join(OPERATIONS);
        let text = String::from_utf8(files::read(&path)?)
            .map_err(|_| no_result(&path, "it is no text in UTF-8"))?;
        let mut records = Vec::new();
        for (number, cells) in rows(&text).into_iter().enumerate().skip(1) {
            let record = record(&cells);
            let line = || no_result(&path, &format!("operation {number} has other columns"));
            records.push(record.ok_or_else(line)?);
        }
        Ok(Outcome { records, ..Outcome::default() })
    }

    /// Draws it again from its operations: the same drawings that its page has.
    ///
    /// # Errors
    /// As [`Self::outcome`].
    pub fn drawings(&self) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(report::drawings(&self.outcome()?).to_vec())
    }

    /// Returns the numbers that are compared: what, of which more is better or not, and the value.
    fn values(&self) -> Vec<(String, f64)> {
        let numbers = &self.numbers;
        let named = |name: &str, key: &str| Some((name.to_owned(), numbers[key].as_f64()?));
        let lost = numbers["lost"].as_array().map(|lost| ("lost".to_owned(), lost.len() as f64));
        let mut values: Vec<(String, f64)> = [
            named("failed", "failed"),
            lost,
            named("in all, s", "elapsed_seconds"),
            named("processor, s", "processor_seconds"),
            named("memory at most, bytes", "memory_peak_bytes"),
            named("bytes a second", "bytes_per_second"),
        ]
        .into_iter()
        .flatten()
        .collect();
        for program in numbers["processes"].as_array().into_iter().flatten() {
            let name = program["name"].as_str().unwrap_or_default();
            let of_it = [("processor", "processor_seconds"), ("memory", "memory_peak_bytes")];
            values.extend(of_it.into_iter().filter_map(|(what, key)| {
                Some((format!("{name}: {what}"), program[key].as_f64()?))
            }));
        }
        for way in ["up", "down"] {
            let bytes = numbers["wire"][way]["bytes"].as_f64();
            values.extend(bytes.map(|bytes| (format!("{way}, bytes"), bytes)));
        }
        let rates = &numbers["over_repetitions"]["bytes_per_second"];
        for name in SPREAD {
            let rate = rates[name].as_f64();
            values
                .extend(rate.map(|rate| (format!("bytes a second, {name} of repetitions"), rate)));
        }
        for operation in numbers["operations"].as_array().into_iter().flatten() {
            let kind = operation["operation"].as_str().unwrap_or_default();
            values.extend(operation["done"].as_f64().map(|done| (format!("{kind}: done"), done)));
            for name in SECONDS {
                let millis = operation["seconds"][name].as_f64().map(|seconds| seconds * 1e3);
                values.extend(millis.map(|millis| (format!("{kind}: {name}, ms"), millis)));
            }
        }
        values
    }
}

/// A number of two results.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Which number.
    pub what: String,
    /// Of the first, where it has one.
    pub one: Option<f64>,
    /// Of the second.
    pub other: Option<f64>,
}

impl Compared {
    /// How many times the second is the first.
    pub fn ratio(&self) -> Option<f64> {
        let (one, other) = self.one.zip(self.other)?;
        (one != 0.0).then_some(other / one)
    }
}

/// Puts the numbers of two results side by side.
pub fn compare(one: &Kept, other: &Kept) -> Vec<Compared> {
    let (ones, others) = (one.values(), other.values());
    let find = |values: &[(String, f64)], what: &str| {
        values.iter().find(|(known, _)| known == what).map(|(_, value)| *value)
    };
    let mut names: Vec<&String> = ones.iter().map(|(name, _)| name).collect();
    let more = others.iter().map(|(name, _)| name).filter(|name| find(&ones, name).is_none());
    names.extend(more);
    let compared = |what: &String| Compared {
        what: what.clone(),
        one: find(&ones, what),
        other: find(&others, what),
    };
    names.into_iter().map(compared).collect()
}

/// Returns what two results differ in that is to be alike if numbers are to be compared: what was done, and where.
pub fn differences(one: &Kept, other: &Kept) -> Vec<String> {
    let keys =
        ["description", "target", "version", "threads", "repetitions", "asked", "environment"];
    let value = |kept: &Kept, key: &str| match (key, &kept.numbers[key]) {
        // Of before there were any.
        ("repetitions", Value::Null) => Value::from(1),
        (_, value) => value.clone(),
    };
    let differ = |key: &&str| value(one, key) != value(other, key);
    let words = |key: &str| match key {
        "environment" => "they were measured on different machines".to_owned(),
        _ => format!("{key}: {} and {}", value(one, key), value(other, key)),
    };
    keys.into_iter().filter(differ).map(words).collect()
}

/// Writes the comparison as a page.
///
/// # Errors
/// As [`Kept::outcome`].
pub fn page(one: &Kept, other: &Kept) -> Result<Page, LabError> {
    let names = [one.name(), other.name()];
    let mut page = Page::new(format!("{} and {}", names[0], names[1]));
    for difference in differences(one, other) {
        page = page.bad(difference);
    }
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let row = |compared: &Compared| {
        let ratio = compared.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        vec![compared.what.clone(), cell(compared.one), cell(compared.other), ratio]
    };
    let rows = compare(one, other).iter().map(row).collect();
    page = page.table(&["", &names[0], &names[1], "second over first"], rows);
    let mut series = Vec::new();
    for (kept, which) in [(one, "first"), (other, "second")] {
        for (kind, points) in report::shares_by_kind(&kept.outcome()?) {
            series.push(Series::ours(format!("{which}: {}", kind.name()), points));
        }
    }
    let plot = Plot {
        title: "No longer than".to_owned(),
        across: "milliseconds".to_owned(),
        up: "percent of the operations".to_owned(),
        series,
    };
    Ok(page.drawing("comparison", plot.lines()))
}

/// Writes a number so that four digits of it are seen.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.decimals$}") }
}

fn json(path: &Path) -> Result<Value, LabError> {
    if files::look(path)?.is_none() {
        return Err(no_result(path, "it is not there"));
    }
    serde_json::from_slice(&files::read(path)?).map_err(|error| no_result(path, &error.to_string()))
}

fn no_result(path: &Path, what: &str) -> LabError {
    LabError::NoResult { path: path.to_owned(), what: what.to_owned() }
}

/// Reads a line of a table of operations.
fn record(cells: &[String]) -> Option<Record> {
    // Before there were repetitions, a table had one column less.
    let (repetition, cells) = match cells {
        [repetition, cells @ ..] if cells.len() == 10 => (repetition.parse().ok()?, cells),
        cells => (1, cells),
    };
    let [number, worker, kind, warm_up, started, made, took, bytes, path, failure] = cells else {
        return None;
    };
    let seconds = |cell: &str| {
        let seconds = if cell.is_empty() { 0.0 } else { cell.parse().ok()? };
        Duration::try_from_secs_f64(seconds).ok()
    };
    Some(Record {
        repetition,
        number: number.parse().ok()?,
        worker: worker.parse().ok()?,
        kind: Operation::DONE.into_iter().find(|known| known.name() == kind.as_str())?,
        started: seconds(started)?,
        made: seconds(made)?,
        took: seconds(took)?,
        bytes: bytes.parse().ok()?,
        path: path.clone(),
        failure: (!failure.is_empty()).then(|| failure.clone()),
        is_warm_up: warm_up == "1",
    })
}

/// Takes a table apart: cells in quotes may have commas, quotes and new lines in them.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut is_quoted) =
        (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                cell.push('"');
                letters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(letter),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::Plan;
    use crate::output::Output;

    fn outcome(millis: &[u64], failure: Option<&str>) -> Outcome {
        let record = |(number, millis): (usize, &u64)| Record {
            repetition: 1,
            number: number as u64,
            worker: 0,
            kind: if number == 0 { Operation::Download } else { Operation::Upload },
            started: Duration::from_millis(number as u64),
            made: Duration::ZERO,
            took: Duration::from_millis(*millis),
            bytes: 10,
            path: format!("a,\"b\"/{number}"),
            failure: failure.filter(|_| number == 1).map(str::to_owned),
            is_warm_up: false,
        };
        let records: Vec<Record> = millis.iter().enumerate().map(record).collect();
        let asked = records.len() as u64;
        Outcome { asked, repetitions: 1, records, ..Outcome::default() }
    }

    fn kept(folder: &Path, outcome: &Outcome) -> Kept {
        let plan =
            Plan::of_toml("operation = \"mixed\"\n[mix]\nupload = 1\n[target]\nfolder = \"f\"\n");
        let output = Output::new(folder.to_owned(), folder.to_owned()).unwrap();
        report::write(&plan.unwrap(), "folder f", "1", outcome, &output).unwrap();
        Kept::open(folder).unwrap()
    }

    #[test]
    fn results_are_listed_and_drawn_again_as_they_were() {
        let room = tempfile::tempdir().unwrap();
        assert_eq!(list(&room.path().join("none")).unwrap().len(), 0);
        let measured = outcome(&[4, 5, 6], Some("two\nlines, \"quoted\""));
        let folder = room.path().join("2026-a");
        let one = kept(&folder, &measured);
        files::write(&room.path().join("2026-b/probe.json"), "{\"name\": \"rsync\"}").unwrap();
        files::write(&room.path().join("2026-c/other.txt"), "nothing").unwrap();
        let found = list(room.path()).unwrap();
        let [Found::Benchmark(first), Found::Probe { name, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((first.name().as_str(), name.as_str()), ("2026-a", "rsync"));

        let read = one.outcome().unwrap();
        assert_eq!(read.records[1].failure.as_deref(), Some("two\nlines, \"quoted\""));
        assert_eq!(read.csv(), measured.csv());
        for (name, svg) in one.drawings().unwrap() {
            let before = files::read(&folder.join(format!("{name}.svg"))).unwrap();
            assert_eq!(svg.as_bytes(), before, "{name}");
        }

        // Of before there were repetitions.
        let old = "number,thread,operation,warm_up,started_s,made_s,took_s,bytes,path,failure\n";
        let old = old.to_owned() + "7,0,upload,0,0.1,0,0.2,10,a,\n";
        files::write(&folder.join("benchmark.csv"), old).unwrap();
        let read = one.outcome().unwrap();
        assert_eq!((read.records[0].repetition, read.records[0].number), (1, 7));
    }

    #[test]
    fn two_results_are_compared_number_by_number() {
        let room = tempfile::tempdir().unwrap();
        let one = kept(&room.path().join("one"), &outcome(&[4, 5, 6], None));
        let other = kept(&room.path().join("other"), &outcome(&[4, 10, 12], None));
        let compared = compare(&one, &other);
        let of = |what: &str| compared.iter().find(|it| it.what == what).unwrap().clone();
        assert_eq!(of("upload: max, ms").ratio(), Some(2.0));
        assert_eq!(of("download: p50, ms").ratio(), Some(1.0));
        // Nothing failed in the first: there is no ratio to nothing.
        assert_eq!((of("failed").one, of("failed").ratio()), (Some(0.0), None));
        assert_eq!(differences(&one, &other), Vec::<String>::new());
        let html = page(&one, &other).unwrap().html();
        assert!(html.contains("<td>2.000</td>") && html.contains("second: upload"), "{html}");

        let third = kept(&room.path().join("third"), &outcome(&[4], None));
        assert_eq!(differences(&one, &third), ["asked: 3 and 1"]);
        let missing = compare(&one, &third);
        let upload = missing.iter().find(|it| it.what == "upload: done").unwrap();
        assert_eq!((upload.other, upload.ratio()), (None, None));
    }

    #[test]
    fn what_is_no_result_is_refused_by_name() {
        let room = tempfile::tempdir().unwrap();
        let error = Kept::open(room.path()).unwrap_err();
        assert!(
            error.to_string().contains("benchmark.json is no result of a benchmark"),
            "{error}"
        );
        let folder = room.path().join("one");
        let one = kept(&folder, &outcome(&[4, 5], None));
        files::write(&folder.join("benchmark.csv"), "number,thread\n1,2\n").unwrap();
        let error = one.outcome().unwrap_err();
        assert!(error.to_string().contains("operation 1"), "{error}");
        files::write(&folder.join("benchmark.json"), "{}").unwrap();
        assert!(list(room.path()).is_err());
    }

    #[test]
    fn numbers_show_four_digits() {
        let shown = [0.0, 3.0, 0.123_45, 12.345, 123.45, 1234.5, 0.5].map(number);
        assert_eq!(shown, ["0", "3", "0.123", "12.35", "123.5", "1234", "0.500"]);
    }
}
