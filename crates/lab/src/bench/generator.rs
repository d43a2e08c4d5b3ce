//! Makes the bytes of files.

use std::path::Path;

use super::plan::{Files, Kind};
use crate::dataset::item::{self, Item};
use crate::dataset::prose::Prose;
use crate::error::LabError;
use crate::random::Random;
use crate::trace::{self, Action, data};

/// Makes files of one kind; what they have in common is made once.
#[derive(Debug)]
pub(super) struct Generator {
    files: Files,
    seed: u64,
    /// The beginning that all files have.
    common: Vec<u8>,
    /// The language of those that people write.
    prose: Option<Prose>,
    /// Those of a trace, in its order.
    written: Vec<Written>,
    /// Whether another repetition had these files of the trace already.
    is_again: bool,
}

/// A file that can be edited.
#[derive(Debug)]
pub(super) enum Made {
    /// Of which some bytes change.
    Bytes(Vec<u8>),
    /// That changes as people change it.
    Item(Box<Item>),
}

/// A file as a trace writes it.
#[derive(Debug)]
struct Written {
    /// With what its name ends, with the dot.
    ending: String,
    size: u64,
    data: data::Kind,
    seed: u64,
}

impl Generator {
    /// Makes what all files have in common, for so many threads.
    ///
    /// # Errors
    /// [`LabError::Read`] and [`LabError::Trace`] where files are those of a trace, [`LabError::Benchmark`] where it has none, or too large ones.
    pub(super) fn new(files: &Files, seed: u64, threads: usize) -> Result<Self, LabError> {
        let length = match files.kind {
            Kind::Identical => files.size,
            // Cut once: a second rounding, of the rest, would lose a byte, as it did in BenchCloud.
            Kind::Delta => (files.size as f64 * files.common) as u64,
            _ => 0,
        };
        let common = data::bytes(data::Kind::Random, length, seed);
        let written = match &files.trace {
            Some(path) => written(files, path, threads)?,
            None => Vec::new(),
        };
        let prose = files.kind.is_structured().then(Prose::new);
        Ok(Self { files: files.clone(), seed, common, prose, written, is_again: false })
    }

    /// Makes files of a trace other than they are in it, as in its second round.
    pub(super) fn again(self) -> Self {
        Self { is_again: true, ..self }
    }

    /// Makes a file; `number` tells it from the others.
    pub(super) fn file(&self, number: u64) -> Vec<u8> {
        let made = self.made(number);
        match made {
            Made::Bytes(bytes) => bytes,
            Made::Item(_) => self.bytes(&made),
        }
    }

    /// Makes a file that is to be edited.
    pub(super) fn made(&self, number: u64) -> Made {
        let seed = Random::new(self.seed ^ number.wrapping_add(1)).next();
        let size = self.files.size;
        if let Some((kind, prose)) = item_kind(self.files.kind).zip(self.prose.as_ref()) {
            return Made::Item(Box::new(Item::new(kind, size, prose, &mut Random::new(seed))));
        }
        Made::Bytes(match self.files.kind {
            Kind::Text => data::bytes(data::Kind::Text, size, seed),
            Kind::Identical => self.common.clone(),
            Kind::Sparse => {
                let repeated = self.files.repeat.bytes().cycle();
                repeated.take(size as usize).collect()
            }
            Kind::Delta => {
                let rest = size - self.common.len() as u64;
                let mut file = self.common.clone();
                file.extend(data::bytes(data::Kind::Random, rest, seed));
                file
            }
            Kind::Trace => {
                let (file, round) = self.written(number);
                // Whoever has all files of a trace and wants more gets others like them: equal ones would cost a target nothing that keeps them once.
                // Those that are equal in the trace are so again.
                let other = match round == 0 && !self.is_again {
                    true => 0,
                    false => Random::new(self.seed.wrapping_add(round)).next(),
                };
                data::bytes(file.data, file.size, file.seed ^ other)
            }
            _ => data::bytes(data::Kind::Random, size, seed),
        })
    }

    /// Writes a file that may have been edited.
    pub(super) fn bytes(&self, made: &Made) -> Vec<u8> {
        match (made, &self.prose) {
            (Made::Bytes(bytes), _) => bytes.clone(),
            (Made::Item(item), Some(prose)) => item.bytes(prose),
            (Made::Item(_), None) => unreachable!("what people write has a language"),
        }
    }

    /// Changes a file: some bytes in one place, or as people do.
    pub(super) fn edit(&self, made: &mut Made, random: &mut Random) {
        match (made, &self.prose) {
            (Made::Item(item), Some(prose)) => item.edit(prose, random),
            (Made::Item(_), None) => unreachable!("what people write has a language"),
            (Made::Bytes(file), _) => {
                let length = (self.files.edit as usize).min(file.len());
                let start = random.below((file.len() - length) as u64 + 1) as usize;
                random.fill(&mut file[start..start + length]);
            }
        }
    }

    /// Names a file of a run.
    pub(super) fn name(&self, run: &str, number: u64) -> String {
        let Files { prefix, suffix, kind, .. } = &self.files;
        let ending = match item_kind(*kind) {
            _ if !suffix.is_empty() => suffix.clone(),
            Some(kind) => format!(".{}", kind.extension()),
            None if *kind == Kind::Trace => self.written(number).0.ending.clone(),
            None => String::new(),
        };
        format!("{prefix}{run}-{number:06}{ending}")
    }

    /// Returns a file of the trace, and how often all of them were taken before.
    fn written(&self, number: u64) -> (&Written, u64) {
        let all = self.written.len() as u64;
        (&self.written[(number % all) as usize], number / all)
    }
}

/// What files of a kind are as the lab makes them for its datasets.
fn item_kind(kind: Kind) -> Option<item::Kind> {
    match kind {
        Kind::Jpeg => Some(item::Kind::Photo),
        Kind::Office => Some(item::Kind::Docx),
        Kind::Source => Some(item::Kind::Source),
        _ => None,
    }
}

/// Reads which files a trace writes.
fn written(files: &Files, path: &Path, threads: usize) -> Result<Vec<Written>, LabError> {
    let refuse = |what: &str| LabError::Benchmark {
        what: format!("files.trace: {} {what}", path.display()),
    };
    let mut all = Vec::new();
    for step in trace::open(path)? {
        let action = step?.action;
        if let Action::WriteVersion { .. } = action {
            return Err(refuse("has the documents of a dataset, which no benchmark makes"));
        }
        if let Action::Write { path, size, data, seed } = action {
            if !files.fits(size, threads) {
                return Err(refuse(&format!(
                    "writes a file of {size} bytes: those of all threads together end at 4 GiB"
                )));
            }
            let ending = Path::new(&path).extension();
            let ending =
                ending.map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
            all.push(Written { ending, size, data, seed });
        }
    }
    if all.is_empty() { Err(refuse("writes no file")) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn made(kind: Kind, size: u64, common: f64) -> [Vec<u8>; 2] {
        let files = Files { kind, size, common, ..Files::default() };
        let generator = Generator::new(&files, 7, 1).unwrap();
        assert_eq!(
            generator.file(3),
            Generator::new(&files, 7, 1).unwrap().file(3),
            "equal seeds, equal files"
        );
        [0, 1].map(|number| generator.file(number))
    }

    #[test]
    fn files_have_in_common_what_their_kind_says_to_the_byte() {
        for (kind, common) in [(Kind::Random, 0), (Kind::Identical, 999), (Kind::Delta, 899)] {
            let [one, other] = made(kind, 999, 0.9);
            assert_eq!((one.len(), other.len()), (999, 999));
            let equal = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            assert!((common..=common + 2).contains(&equal), "{kind:?}: {equal}");
        }
        assert_eq!(made(Kind::Sparse, 5, 0.0)[0], b"     ");
        assert!(made(Kind::Text, 100, 0.0)[0].is_ascii());
    }

    #[test]
    fn an_edit_changes_no_more_than_it_says() {
        let files = Files { size: 5000, edit: 100, ..Files::default() };
        let generator = Generator::new(&files, 1, 1).unwrap();
        let mut random = Random::new(1);
        for _ in 0..50 {
            let old = generator.file(0);
            let mut made = generator.made(0);
            generator.edit(&mut made, &mut random);
            let new = generator.bytes(&made);
            let differing = |(at, byte): (usize, &u8)| (*byte != new[at]).then_some(at);
            let places: Vec<usize> = old.iter().enumerate().filter_map(differing).collect();
            let (first, last) = (places[0], places[places.len() - 1]);
            assert!(new.len() == 5000 && last - first < 100, "{first} to {last}");
        }
    }

    #[test]
    fn what_people_make_has_the_structure_and_the_ending_of_its_kind() {
        for (kind, ending, begins, ends) in [
            (Kind::Jpeg, ".jpg", &b"\xff\xd8\xff\xe0"[..], &b"\xff\xd9"[..]),
            (Kind::Office, ".docx", b"PK\x03\x04", b""),
            (Kind::Source, ".c", b"", b"\n"),
        ] {
            let [one, other] = made(kind, 50_000, 0.0);
            assert!(one != other && (33_000..75_000).contains(&one.len()), "{kind:?}");
            assert!(one.starts_with(begins) && one.ends_with(ends), "{kind:?}");
            let files = Files { kind, ..Files::default() };
            let named = |files: &Files| Generator::new(files, 7, 1).unwrap().name("run", 3);
            assert_eq!(named(&files), format!("benchmark-run-000003{ending}"));
            let files = Files { suffix: ".bin".to_owned(), ..files };
            assert_eq!(named(&files), "benchmark-run-000003.bin");
        }
    }

    #[test]
    fn what_people_write_is_edited_as_they_do() {
        for kind in [Kind::Office, Kind::Source] {
            let files = Files { kind, size: 30_000, ..Files::default() };
            let generator = Generator::new(&files, 1, 1).unwrap();
            let (mut made, mut random) = (generator.made(0), Random::new(1));
            let mut old = generator.bytes(&made);
            assert_eq!(old, generator.file(0));
            for _ in 0..5 {
                generator.edit(&mut made, &mut random);
                let new = generator.bytes(&made);
                assert!(new != old && new.len().abs_diff(old.len()) < 5000, "{kind:?}");
                old = new;
            }
        }
    }

    #[test]
    fn files_of_a_trace_come_in_its_order_and_others_like_them_after_the_last() {
        const HEAD: &str = r#"{"syncline_trace":1,"name":"day","about":"by hand","clients":1}"#;
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("day.trace");
        let of = |lines: &str| {
            files::write(&path, format!("{HEAD}\n{lines}")).unwrap();
            let files = Files { kind: Kind::Trace, trace: Some(path.clone()), ..Files::default() };
            Generator::new(&files, 7, 8)
        };
        let generator = of(concat!(
            r#"{"do":"make-folder","path":"a"}"#,
            "\n",
            r#"{"do":"write","path":"a/b.txt","size":300,"data":"text","seed":5}"#,
            "\n",
            r#"{"at_ms":5,"do":"write","path":"c","size":20,"data":"random","seed":6}"#,
            "\n",
        ));
        let generator = generator.unwrap();
        assert_eq!(generator.file(0), data::bytes(data::Kind::Text, 300, 5));
        assert_eq!(generator.file(1), data::bytes(data::Kind::Random, 20, 6));
        let again = generator.file(2);
        assert!(again.len() == 300 && again.is_ascii() && again != generator.file(0));
        let generator = generator.again();
        let repeated = generator.file(0);
        assert!(repeated.len() == 300 && repeated != data::bytes(data::Kind::Text, 300, 5));
        let names = [0, 1].map(|number| generator.name("run", number));
        assert_eq!(names, ["benchmark-run-000000.txt", "benchmark-run-000001"]);

        // Files that are equal are so in each repetition and each round.
        let line = |path: &str| {
            format!(r#"{{"do":"write","path":"{path}","size":300,"data":"random","seed":5}}"#)
                + "\n"
        };
        let twins = of(&(line("a") + &line("b"))).unwrap().again();
        let files = [0, 1, 2, 3].map(|number| twins.file(number));
        assert!(files[0] == files[1] && files[2] == files[3] && files[1] != files[2]);
        let made = r#"{"do":"write-version","path":"a","version":1,"size":1,"sha256":"a"}"#;
        let made = format!(
            "{}\n{made}",
            HEAD.replace('}', r#","dataset":{"name":"A","size":"small","seed":1}}"#)
        );
        files::write(&path, made).unwrap();
        let files = Files { kind: Kind::Trace, trace: Some(path.clone()), ..Files::default() };
        let error = Generator::new(&files, 7, 8).err().unwrap().to_string();
        assert!(error.contains("the documents of a dataset"), "{error}");

        let huge = r#"{"do":"write","path":"a","size":1000000000,"data":"zero","seed":5}"#;
        for (lines, wanted) in [
            ("", "writes no file"),
            (huge, "a file of 1000000000 bytes"),
            ("nothing", "line 2 of the trace"),
        ] {
            let error = of(lines).unwrap_err().to_string();
            assert!(error.contains(wanted), "{lines}: {error}");
        }
    }
}
