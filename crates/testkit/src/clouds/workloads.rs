//! The folders of MetaSync 2015, 5.3, drawn from a seed: as many files, directories and bytes, and about as compressible.

use model::{Name, RelativePath};

use crate::random::Dice;

/// A folder's directories and files.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// Directories, each after the one it lies in.
    pub directories: Vec<RelativePath>,
    /// Files and their bytes.
    pub files: Vec<(RelativePath, Vec<u8>)>,
}

impl Workload {
    /// Returns how many bytes the files have.
    pub fn length(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Adds a directory below another one, and returns it.
    fn directory(&mut self, parent: &RelativePath, name: &str) -> RelativePath {
        let path = below(parent, name);
        self.directories.push(path.clone());
        path
    }
}

fn below(parent: &RelativePath, name: &str) -> RelativePath {
    let name = Name::new(name.as_bytes()).expect("names are made here");
    parent.join(&name).expect("paths are short")
}

/// A source tree like Linux 2.6.1: 920 directories, 15,000 files, 166 MB.
pub fn source_tree(seed: u64) -> Workload {
    source_tree_of(seed, 920, 15_000, 166_000_000)
}

/// A source tree of any size.
pub fn source_tree_of(seed: u64, directories: usize, files: usize, length: u64) -> Workload {
    let mut dice = Dice::new(seed);
    let writer = Writer::new(&mut dice);
    let mut tree = Workload::default();
    while tree.directories.len() < directories {
        // Some in the root, the others each in one that is there.
        let parent = match tree.directories.len() {
            count if count >= 20.min(directories) => dice.pick(&tree.directories).clone(),
            _ => RelativePath::ROOT,
        };
        let name = format!("directory{}", tree.directories.len());
        tree.directory(&parent, &name);
    }
    // Many small files and a few large ones: a product of three even draws, scaled to the sum.
    let draw = |dice: &mut Dice| (0..3).map(|_| 1 + dice.below(1000)).product::<u64>();
    let weights: Vec<u64> = (0..files).map(|_| draw(&mut dice)).collect();
    let sum: u64 = weights.iter().sum();
    for (number, weight) in weights.into_iter().enumerate() {
        let parent = dice.pick(&tree.directories).clone();
        let size = (u128::from(weight) * u128::from(length) / u128::from(sum.max(1))) as usize;
        let bytes = writer.text(&mut dice, size);
        tree.files.push((below(&parent, &format!("file{number}.c")), bytes));
    }
    tree
}

/// The folder of a paper: 3 directories, 70 files, 1.6 MB, of which a few figures are most.
pub fn paper_folder(seed: u64) -> Workload {
    let mut dice = Dice::new(seed);
    let writer = Writer::new(&mut dice);
    let mut folder = Workload::default();
    let names = ["figures", "data", "sections"];
    let places = names.map(|name| folder.directory(&RelativePath::ROOT, name));
    for number in 0..70 {
        let (path, bytes) = match number {
            0..10 => {
                let mut bytes = vec![0; 110_000];
                dice.fill(&mut bytes);
                (below(&places[0], &format!("figure{number}.pdf")), bytes)
            }
            _ => {
                let place = &places[1 + number % 2];
                let size = 2_000 + dice.below(12_500) as usize;
                (below(place, &format!("text{number}.tex")), writer.text(&mut dice, size))
            }
        };
        folder.files.push((path, bytes));
    }
    folder
}

/// Photos: 50 files that nothing shortens, 193 MB.
pub fn photos(seed: u64) -> Workload {
    photos_of(seed, 50, 193_000_000)
}

/// So many photos of so many bytes together.
pub fn photos_of(seed: u64, count: u64, length: u64) -> Workload {
    let mut dice = Dice::new(seed);
    let mut folder = Workload::default();
    let mean = length / count;
    let mut left = length;
    for number in 0..count {
        let is_last = number + 1 == count;
        let size = if is_last { left } else { (mean / 2 + dice.below(mean)).min(left) };
        left -= size;
        let mut bytes = vec![0; size as usize];
        dice.fill(&mut bytes);
        let path = below(&RelativePath::ROOT, &format!("photo{number:03}.jpg"));
        folder.files.push((path, bytes));
    }
    folder
}

/// How much text is repeated, and how long one repetition is at most, in bytes.
const PHRASES_LENGTH: usize = 24 * 1024;
const PHRASE_LENGTH_MAX: usize = 250;

/// Writes text that compresses about as source code does: a vocabulary of which a few words are most, and whole phrases
/// that come again.
struct Writer {
    words: Vec<Vec<u8>>,
    /// What is written again and again.
    phrases: Vec<u8>,
}

impl Writer {
    fn new(dice: &mut Dice) -> Self {
        let word = |dice: &mut Dice| {
            let length = 2 + dice.below(9);
            (0..length).map(|_| b'a' + dice.below(26) as u8).collect()
        };
        let words = (0..6000).map(|_| word(dice)).collect();
        let mut writer = Self { words, phrases: Vec::new() };
        writer.phrases = writer.text(dice, PHRASES_LENGTH);
        writer
    }

    fn text(&self, dice: &mut Dice, length: usize) -> Vec<u8> {
        const ENDS: [&[u8]; 8] = [b" ", b" ", b" ", b"(", b");\n\t", b" = ", b"->", b", "];
        let mut text = Vec::with_capacity(length + 32);
        while text.len() < length {
            if !self.phrases.is_empty() && dice.chance(70) {
                let start = dice.index(PHRASES_LENGTH - PHRASE_LENGTH_MAX);
                let end = start + 30 + dice.index(PHRASE_LENGTH_MAX - 30);
                text.extend_from_slice(&self.phrases[start..end]);
                continue;
            }
            // The cube of an even draw: the first hundred words are a quarter of all.
            let drawn = dice.below(1000) * dice.below(1000) * dice.below(1000);
            let index = drawn as usize * self.words.len() / 1_000_000_000;
            text.extend_from_slice(&self.words[index]);
            text.extend_from_slice(ENDS[dice.index(ENDS.len())]);
        }
        text.truncate(length);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_sizes_of_the_paper() {
        let paper = paper_folder(1);
        assert_eq!((paper.directories.len(), paper.files.len()), (3, 70));
        assert!((1_500_000..1_700_000).contains(&paper.length()), "{}", paper.length());
        let tree = source_tree_of(1, 92, 1_500, 16_600_000);
        assert_eq!((tree.directories.len(), tree.files.len()), (92, 1_500));
        assert!((16_500_000..16_700_000).contains(&tree.length()), "{}", tree.length());
        let photos = photos_of(1, 50, 1_930_000);
        assert_eq!((photos.files.len(), photos.length()), (50, 1_930_000));
    }

    #[test]
    fn same_seed_gives_the_same_folder() {
        assert_eq!(paper_folder(3).files, paper_folder(3).files);
        assert_ne!(paper_folder(3).files, paper_folder(4).files);
    }
}
