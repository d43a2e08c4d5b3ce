//! Where people change their files: the pattern of the *Homes* data set, the home directories of students.

use super::super::{Edit, EditKind, Place};
use crate::random::Random;

/// Which shares edits at the end (E) and in the middle (M) have. The StackSync paper (2014, section 5.1) and BenchBox, a program of the same authors, have them the
/// other way round; both have 38 % at the beginning (B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As StackSync prints it: E 8 %, M 3 %.
    Paper,
    /// As BenchBox has it: E 3 %, M 8 %.
    BenchBox,
}

/// The rest are combinations. StackSync only says that they are the rest (51 %); these shares are BenchBox's, which also knows edits in all three places.
const COMBINATIONS: [(&[Place], u64); 4] = [
    (&[Place::Beginning, Place::End], 10),
    (&[Place::Beginning, Place::Middle], 11),
    (&[Place::Middle, Place::End], 1),
    (&[Place::Beginning, Place::Middle, Place::End], 29),
];

/// Draws where a file is changed.
pub(crate) fn places(random: &mut Random, reading: Reading) -> &'static [Place] {
    let (end, middle) = match reading {
        Reading::Paper => (8, 3),
        Reading::BenchBox => (3, 8),
    };
    let alone: [(&[Place], u64); 3] =
        [(&[Place::Beginning], 38), (&[Place::End], end), (&[Place::Middle], middle)];
    random.weighted(alone.into_iter().chain(COMBINATIONS))
}

/// Changes so many bytes, in equal parts where a file is hit in several places.
pub(crate) fn edits(random: &mut Random, places: &[Place], bytes: u64) -> Vec<Edit> {
    let size = bytes.div_ceil(places.len() as u64);
    let edit = |place: &Place| {
        // BenchBox writes over the middle of a file; a file grows at its ends.
        let kind = if *place == Place::Middle { EditKind::Overwrite } else { EditKind::Insert };
        Edit { place: *place, offset: None, kind, size, seed: random.next() }
    };
    places.iter().map(edit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_have_the_shares_of_their_source() {
        use Place::{Beginning, End, Middle};
        for (reading, end, middle) in [(Reading::Paper, 8, 3), (Reading::BenchBox, 3, 8)] {
            let mut random = Random::new(7);
            let drawn: Vec<_> = (0..100_000).map(|_| places(&mut random, reading)).collect();
            let shares: [(&[Place], i64); 7] = [
                (&[Beginning], 38),
                (&[End], end),
                (&[Middle], middle),
                (&[Beginning, End], 10),
                (&[Beginning, Middle], 11),
                (&[Middle, End], 1),
                (&[Beginning, Middle, End], 29),
            ];
            for (places, percent) in shares {
                let found = drawn.iter().filter(|drawn| **drawn == places).count() as i64;
                assert!((found - percent * 1000).abs() < 700, "{reading:?} {places:?}: {found}");
            }
        }
    }

    #[test]
    fn a_middle_is_written_over_and_ends_grow() {
        let all = [Place::Beginning, Place::Middle, Place::End];
        let edits = edits(&mut Random::new(1), &all, 100);
        let kinds: Vec<_> = edits.iter().map(|edit| (edit.kind, edit.size)).collect();
        let [insert, overwrite] = [EditKind::Insert, EditKind::Overwrite];
        assert_eq!(kinds, [(insert, 34), (overwrite, 34), (insert, 34)]);
    }
}
