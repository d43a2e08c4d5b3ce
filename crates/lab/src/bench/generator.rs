//! Makes the bytes of files.

use super::plan::{Files, Kind};
use crate::random::Random;
use crate::trace::data;

/// Makes files of one kind; what they have in common is made once.
#[derive(Debug)]
pub(super) struct Generator {
    files: Files,
    seed: u64,
    /// The beginning that all files have.
    common: Vec<u8>,
}

impl Generator {
    pub(super) fn new(files: &Files, seed: u64) -> Self {
        let length = match files.kind {
            Kind::Identical => files.size,
            // Cut once: a second rounding, of the rest, would lose a byte, as it did in BenchCloud.
            Kind::Delta => (files.size as f64 * files.common) as u64,
            Kind::Random | Kind::Sparse | Kind::Text => 0,
        };
        let common = data::bytes(data::Kind::Random, length, seed);
        Self { files: files.clone(), seed, common }
    }

    /// Makes a file; `number` tells it from the others.
    pub(super) fn file(&self, number: u64) -> Vec<u8> {
        let seed = Random::new(self.seed ^ number.wrapping_add(1)).next();
        let size = self.files.size;
        match self.files.kind {
            Kind::Random => data::bytes(data::Kind::Random, size, seed),
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
        }
    }

    /// Changes a file as an edit does: some bytes in one place.
    pub(super) fn edit(&self, file: &mut [u8], random: &mut Random) {
        let length = (self.files.edit as usize).min(file.len());
        let start = random.below((file.len() - length) as u64 + 1) as usize;
        random.fill(&mut file[start..start + length]);
    }

    /// Names a file of a run.
    pub(super) fn name(&self, run: &str, number: u64) -> String {
        let Files { prefix, suffix, .. } = &self.files;
        format!("{prefix}{run}-{number:06}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: Kind, size: u64, common: f64) -> [Vec<u8>; 2] {
        let files = Files { kind, size, common, ..Files::default() };
        let generator = Generator::new(&files, 7);
        assert_eq!(
            generator.file(3),
            Generator::new(&files, 7).file(3),
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
        let generator = Generator::new(&files, 1);
        let mut random = Random::new(1);
        for _ in 0..50 {
            let old = generator.file(0);
            let mut new = old.clone();
            generator.edit(&mut new, &mut random);
            let differing = |(at, byte): (usize, &u8)| (*byte != new[at]).then_some(at);
            let places: Vec<usize> = old.iter().enumerate().filter_map(differing).collect();
            let (first, last) = (places[0], places[places.len() - 1]);
            assert!(new.len() == 5000 && last - first < 100, "{first} to {last}");
        }
    }
}
