//! The grid of the paper: which edits are made.

use std::fmt;

/// How a file is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// `append`, `insert` or `cut`.
    pub kind: &'static str,
    /// How many bytes come in or go, in all.
    pub size: usize,
    /// In how many places.
    pub places: usize,
}

/// An edit and its place in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Unlike those of all others.
    pub number: u64,
    /// What is done.
    pub edit: Edit,
}

/// What is done to files.
pub const KINDS: [&str; 3] = ["append", "insert", "cut"];

/// How many bytes come in or go.
pub const SIZES: [usize; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// Which sizes are dispersed. An append has one place.
pub const DISPERSED: [usize; 3] = [1_000, 10_000, 100_000];

/// Into how many places.
pub const PLACES: [usize; 4] = [1, 5, 10, 20];

/// Returns the cells; `quick` is a few of them.
pub fn grid(quick: bool) -> Vec<Cell> {
    let mut edits = Vec::new();
    for kind in KINDS {
        edits.extend(SIZES.map(|size| Edit { kind, size, places: 1 }));
    }
    for kind in ["insert", "cut"] {
        for size in DISPERSED {
            edits.extend(PLACES[1..].iter().map(|&places| Edit { kind, size, places }));
        }
    }
    let cells = edits.into_iter().zip(0..).map(|(edit, number)| Cell { number, edit });
    let is_quick = |edit: &Edit| match edit.kind {
        "insert" => [(1, 1), (10_000, 1), (10_000, 20)].contains(&(edit.size, edit.places)),
        _ => edit.size == 1_000 && edit.places == 1,
    };
    cells.filter(|cell| !quick || is_quick(&cell.edit)).collect()
}

impl fmt::Display for Edit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.size)?;
        if self.places > 1 {
            write!(formatter, " in {} places", self.places)?;
        }
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.edit.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_stands_once_and_the_quick_ones_keep_their_seeds() {
        let all = grid(false);
        assert_eq!(all.len(), 3 * 6 + 2 * 3 * 3);
        for (index, cell) in all.iter().enumerate() {
            assert_eq!(all.iter().filter(|other| other.edit == cell.edit).count(), 1);
            assert_eq!(cell.number, index as u64);
        }
        let quick = grid(true);
        assert_eq!(quick.len(), 5);
        assert!(quick.iter().all(|cell| all.contains(cell)));
        assert_eq!(quick[0].to_string(), "append 1000");
        let dispersed = Edit { kind: "insert", size: 10_000, places: 20 };
        assert_eq!(dispersed.to_string(), "insert 10000 in 20 places");
    }
}
