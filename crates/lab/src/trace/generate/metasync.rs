//! The three folders whose synchronisation MetaSync measures (2015, section 5.3, table 7).
//!
//! The paper has: the source tree of Linux 2.6.1 (920 directories, 15 thousand files, 166 MB), the paper itself (3 directories, 70 files, 1.6 MB), and photos (50 files, 193 MB). Each is
//! copied into the folder of one client, and the time is taken until another one has all of it: here that is the initial tree, and `trace exec` says that time. Cloning (figure 10) and
//! relocation (table 6) take the photos.
//!
//! Ours: the sizes of single files, of which the paper has only the sums, which are kept to the byte. Those of sources and of the paper are drawn from a lognormal distribution with the
//! spread that the 1,384 files of Redis 7.0.0 have which are not empty (sigma 1.63 of the natural logarithm, measured); those of photos evenly from half
//! to one and a half times their mean. Each folder is made in any one that is there already. Sources are text, photos random bytes, and half of the files of the paper
//! are text.

use super::super::Action;
use super::super::data::Kind;
use super::{Sheet, Workload, join};
use crate::error::LabError;
use crate::random::Random;

/// A folder to be synchronised.
#[derive(Debug, Clone)]
pub struct MetaSync {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients are to get it.
    pub clients: usize,
    /// Which one.
    pub folder: Folder,
    /// How large it is: with another size than that of the paper there are as many more or fewer files and directories.
    pub tree_bytes: u64,
}

/// One of the three folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// Linux 2.6.1: many small files.
    Source,
    /// The paper: few small files.
    Paper,
    /// Photos: few large files.
    Photos,
}

impl Folder {
    /// As large as in the paper, in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Source => 166_000_000,
            Self::Paper => 1_600_000,
            Self::Photos => 193_000_000,
        }
    }

    fn files(self) -> u64 {
        match self {
            Self::Source => 15_000,
            Self::Paper => 70,
            Self::Photos => 50,
        }
    }

    fn directories(self) -> u64 {
        match self {
            Self::Source => 920,
            Self::Paper => 3,
            Self::Photos => 0,
        }
    }

    /// How many bytes a file has, beside others.
    fn weight(self, random: &mut Random) -> f64 {
        match self {
            Self::Source | Self::Paper => (SIGMA * random.normal()).exp(),
            Self::Photos => 0.5 + random.unit(),
        }
    }

    fn data(self, random: &mut Random) -> (Kind, &'static str) {
        match self {
            Self::Source => (Kind::Text, "c"),
            Self::Paper if random.below(2) == 0 => (Kind::Text, "tex"),
            Self::Paper => (Kind::Random, "pdf"),
            Self::Photos => (Kind::Random, "jpg"),
        }
    }
}

/// The spread of the natural logarithms of sizes.
const SIGMA: f64 = 1.63;

impl MetaSync {
    /// A folder as in the paper.
    pub fn of(folder: Folder) -> Self {
        Self { seed: 2014, clients: 1, folder, tree_bytes: folder.bytes() }
    }

    /// A number of the paper, as many times more as the tree is larger.
    fn scaled(&self, number: u64) -> u64 {
        let scaled = u128::from(number) * u128::from(self.tree_bytes);
        let whole = u128::from(self.folder.bytes());
        let rounded = u64::try_from((scaled + whole / 2) / whole).unwrap_or(u64::MAX);
        rounded.max(number.min(1))
    }
}

impl Workload for MetaSync {
    fn name(&self) -> &'static str {
        match self.folder {
            Folder::Source => "metasync-source",
            Folder::Paper => "metasync-paper",
            Folder::Photos => "metasync-photos",
        }
    }

    fn about(&self) -> String {
        let Self { seed, folder, tree_bytes, .. } = self;
        format!("MetaSync 2015, section 5.3, {folder:?}: {tree_bytes} bytes, seed {seed}")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let mut random = Random::new(self.seed);
        let mut folders = vec![String::new()];
        for number in 1..=self.scaled(self.folder.directories()) {
            let path = join(random.one_of::<String>(&folders), &format!("dir{number:03}"));
            sheet.initial(Action::MakeFolder { path: path.clone() })?;
            folders.push(path);
        }
        let files = self.scaled(self.folder.files());
        // The same weights are drawn twice, to have their sum first and to remember none of them.
        let seed = random.next();
        let mut weights = Random::new(seed);
        let total: f64 = (0..files).map(|_| self.folder.weight(&mut weights)).sum();
        let (mut weights, mut sum, mut until) = (Random::new(seed), 0.0, 0);
        for number in 1..=files {
            sum += self.folder.weight(&mut weights);
            let end = (self.tree_bytes as f64 * (sum / total)) as u64;
            let end =
                if number == files { self.tree_bytes } else { end.clamp(until, self.tree_bytes) };
            let (data, ending) = self.folder.data(&mut random);
            let path =
                join(random.one_of::<String>(&folders), &format!("file{number:05}.{ending}"));
            sheet.initial(Action::Write { path, size: end - until, data, seed: random.next() })?;
            until = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, written};
    use super::*;

    fn sizes(workload: &MetaSync) -> (usize, Vec<u64>) {
        let steps = parsed(workload);
        let size = |action: &Action| match action {
            Action::Write { size, .. } => Some(*size),
            _ => None,
        };
        let sizes: Vec<u64> = steps.iter().filter_map(|step| size(&step.action)).collect();
        (steps.len() - sizes.len(), sizes)
    }

    #[test]
    fn folders_files_and_bytes_are_those_of_the_paper() {
        for (folder, directories, files, bytes) in [
            (Folder::Source, 920, 15_000, 166_000_000),
            (Folder::Paper, 3, 70, 1_600_000),
            (Folder::Photos, 0, 50, 193_000_000),
        ] {
            let workload = MetaSync::of(folder);
            let (made, sizes) = sizes(&workload);
            assert_eq!((made, sizes.len(), sizes.iter().sum::<u64>()), (directories, files, bytes));
            let (_, summary) = written(&workload);
            assert_eq!((summary.tree_bytes, summary.changes), (bytes, 0));
        }
    }

    #[test]
    fn sources_are_spread_as_measured_and_photos_are_alike() {
        let (_, sources) = sizes(&MetaSync::of(Folder::Source));
        let logs: Vec<f64> =
            sources.iter().filter(|size| **size > 0).map(|size| (*size as f64).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        assert!((square.sqrt() - SIGMA).abs() < 0.05, "{}", square.sqrt());
        let (_, photos) = sizes(&MetaSync::of(Folder::Photos));
        let (least, most) = (photos.iter().min().unwrap(), photos.iter().max().unwrap());
        assert!(*least > 1_500_000 && *most < 7_000_000, "{least} {most}");
    }

    #[test]
    fn a_smaller_tree_has_fewer_files_of_the_same_kind() {
        let small = MetaSync { tree_bytes: 16_600_000, ..MetaSync::of(Folder::Source) };
        let (made, sizes) = sizes(&small);
        assert_eq!((made, sizes.len(), sizes.iter().sum::<u64>()), (92, 1500, 16_600_000));
        let none = MetaSync { tree_bytes: 0, ..MetaSync::of(Folder::Photos) };
        assert_eq!(self::sizes(&none), (0, vec![0]));
    }
}
