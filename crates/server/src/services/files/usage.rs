//! What a plain workspace holds, by kinds of files. Pure.
//!
//! *Invariants*: a count goes on in steps, so that nobody waits for all of it; where the workspace changes meanwhile it begins anew,
//! but not for ever: a count over a workspace that changes all the time is of about then.

use content::noted::NoteCursor;
use model::{Head, Name, NodeId, NodeKind, NodeRecord};

use super::View;

/// How often a count begins anew because the workspace has changed.
const BEGINNINGS_MAX: u32 = 3;

/// What people call a file by what is in it, as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Pictures and drawings.
    Image,
    /// Films.
    Video,
    /// Music and speech.
    Audio,
    /// What is written for people: letters, books, tables, slides.
    Document,
    /// Files with files in them.
    Archive,
    /// Plain text, the sources of programs among it.
    Text,
    /// What has another ending, or none.
    Other,
}

/// Endings of each kind, in lower case. The app has pictures for them (`web/app/src/files/kinds.ts`); a test holds both together.
const ENDINGS: [(FileKind, &str); 6] = [
    (
        FileKind::Image,
        "avif bmp cr2 dng gif heic heif ico jpeg jpg nef png psd raw svg tif tiff webp",
    ),
    (FileKind::Video, "avi flv m4v mkv mov mp4 mpeg mpg webm wmv"),
    (FileKind::Audio, "aac aiff flac m4a mid midi mp3 ogg opus wav wma"),
    (
        FileKind::Document,
        "doc docx epub key mobi numbers odp ods odt pages pdf ppt pptx ps rtf xls xlsx",
    ),
    (FileKind::Archive, "7z bz2 deb dmg gz iso jar lz4 rar rpm tar tbz2 tgz txz xz zip zst"),
    (
        FileKind::Text,
        "adoc bat c cc cfg conf cpp cs css csv diff go h hpp htm html ini java js json jsx kt log lua \
         markdown md mjs patch php pl py r rb rs rst scala scss sh sql svelte swift tex toml ts tsv \
         tsx txt vue xml yaml yml zig",
    ),
];

impl FileKind {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 7] = [
        Self::Image,
        Self::Video,
        Self::Audio,
        Self::Document,
        Self::Archive,
        Self::Text,
        Self::Other,
    ];

    /// Returns the kind of a file of that name, by what stands after its last point.
    pub fn of(name: &[u8]) -> Self {
        let mut parts = name.rsplitn(2, |byte| *byte == b'.');
        let (Some(ending), Some(_)) = (parts.next(), parts.next()) else { return Self::Other };
        let ending = ending.to_ascii_lowercase();
        let has = |endings: &str| endings.split(' ').any(|one| one.as_bytes() == ending);
        let found = ENDINGS.iter().find(|(_, endings)| has(endings));
        found.map_or(Self::Other, |(kind, _)| *kind)
    }

    /// Returns the word for it in answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Document => "document",
            Self::Archive => "archive",
            Self::Text => "text",
            Self::Other => "other",
        }
    }
}

/// How many files, and how long they are together, as people have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Sum {
    fn add(&mut self, record: &NodeRecord) {
        if let NodeKind::File(content) = &record.kind {
            self.files += 1;
            // A record is what some device says; nobody has so much that it counts.
            self.bytes = self.bytes.saturating_add(content.size);
        }
    }
}

/// The files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileUsage {
    /// Those that are there, in the order of [`FileKind::ALL`].
    pub kinds: [Sum; FileKind::ALL.len()],
    /// Those that are deleted and may come back: the last version of each.
    pub deleted: Sum,
}

/// A count that is under way.
#[derive(Debug)]
pub struct UsageCount {
    head: Head,
    beginnings: u32,
    /// Folders, and behind which name to go on in them.
    folders: Vec<(NodeId, Option<Name>)>,
    deleted: Option<NoteCursor>,
    usage: FileUsage,
}

impl UsageCount {
    /// Begins to count.
    pub fn new(view: &View) -> Self {
        let folders = vec![(NodeId::ROOT, None)];
        let usage = FileUsage::default();
        Self { head: view.head(), beginnings: 1, folders, deleted: None, usage }
    }

    /// Counts about so many nodes more. Returns whether that was the end.
    pub fn step(&mut self, view: &View, nodes_max: usize) -> bool {
        if view.head() != self.head && self.beginnings < BEGINNINGS_MAX {
            *self = Self { beginnings: self.beginnings + 1, ..Self::new(view) };
        }
        let mut left = nodes_max;
        while left > 0 {
            let Some((folder, after)) = self.folders.pop() else {
                return self.count_deleted(view, left);
            };
            // An empty folder is work, too.
            left = self.count_folder(view, (folder, after), left).saturating_sub(1);
        }
        false
    }

    fn count_folder(
        &mut self,
        view: &View,
        (folder, after): (NodeId, Option<Name>),
        mut left: usize,
    ) -> usize {
        if view.is_mounted(&folder) {
            return left;
        }
        let mut last = after.clone();
        for (name, id) in view.tree().children_after(&folder, after.as_ref()) {
            if left == 0 {
                self.folders.push((folder, last));
                break;
            }
            left -= 1;
            last = Some(name.clone());
            let Some(node) = view.tree().get(id) else { continue };
            match node.record.kind.is_directory() {
                true => self.folders.push((*id, None)),
                false => {
                    let kind = FileKind::of(name.as_bytes());
                    self.usage.kinds[kind as usize].add(&node.record);
                }
            }
        }
        left
    }

    fn count_deleted(&mut self, view: &View, left: usize) -> bool {
        let (nodes, has_more) = view.deleted(self.deleted, left);
        for node in &nodes {
            self.usage.deleted.add(&node.record);
        }
        let seq = |node: &super::DeletedNode| node.deletion.as_ref().map_or(0, |deed| deed.seq);
        self.deleted = nodes.last().map(|node| (seq(node), node.id)).or(self.deleted);
        !has_more
    }

    /// Returns what was counted, and up to which entry the workspace was known when it began.
    pub fn end(self) -> (Head, FileUsage) {
        (self.head, self.usage)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::testing::{commit, node, put_record};
    use model::{Action, Change, ChunkId, ChunkRef, Commit, Content, Entry, Genesis, Mode};

    use super::*;
    use crate::testing::Counter;

    /// What the app knows of kinds, by pictures.
    const OF_THE_APP: &str = include_str!("../../../../../web/app/src/files/kinds.ts");

    fn view() -> View {
        let created = model::Timestamp::default();
        let mode = Mode::Plain;
        let genesis = Genesis { name: String::new(), mode, created, content_key: [0; 32] };
        View::new(&genesis, Arc::new(Counter::default())).unwrap()
    }

    /// Puts a file of so many bytes, or a folder where there are none.
    fn put(n: u8, parent: u8, name: &str, size: Option<u64>) -> Change {
        let chunk = |size| ChunkRef { id: ChunkId::from_bytes([n; 32]), length: size as u32 };
        let chunks = |size| (size > 0).then(|| chunk(size)).into_iter().collect();
        let content = |size| Content { size, chunks: chunks(size), ..Content::default() };
        let kind = size.map_or(NodeKind::Directory, |size| NodeKind::File(content(size)));
        let (parent, name) = (node(parent), Name::new(name).unwrap());
        let modified = model::Timestamp::default();
        put_record(n, 0, &NodeRecord { parent, name, mode: 0o644, modified, kind, conflict: None })
    }

    fn take(view: &mut View, changes: Vec<Change>) {
        let head = view.head();
        let commit = Commit { seen: head, ..commit(head.seq as u8 + 1, changes) };
        view.fold(&Entry { seq: head.seq + 1, previous: head.hash, commit }).unwrap();
    }

    fn count(view: &View, nodes_max: usize) -> FileUsage {
        let mut count = UsageCount::new(view);
        while !count.step(view, nodes_max) {}
        count.end().1
    }

    #[test]
    fn kind_is_that_of_the_ending() {
        for (name, kind) in [
            ("holiday.JPG", FileKind::Image),
            ("a.b.mp4", FileKind::Video),
            ("song.flac", FileKind::Audio),
            ("letter.odt", FileKind::Document),
            ("all.tar.gz", FileKind::Archive),
            ("main.rs", FileKind::Text),
            (".md", FileKind::Text),
            ("jpg", FileKind::Other),
            ("notes.", FileKind::Other),
            ("a.jpg ", FileKind::Other),
            ("a.jp", FileKind::Other),
        ] {
            assert_eq!(FileKind::of(name.as_bytes()), kind, "{name}");
        }
        assert_eq!(FileKind::of(b"\xff\xfe.png"), FileKind::Image);
        for (place, kind) in FileKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn no_ending_is_of_two_kinds_and_the_app_says_the_same() {
        let all: Vec<_> = ENDINGS.iter().flat_map(|(_, endings)| endings.split(' ')).collect();
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        let families = OF_THE_APP.split("const FAMILIES").nth(1).unwrap();
        let families = families.split("];\n").next().unwrap();
        let mut texts = families.split('\'').skip(1).step_by(2);
        let mut known = 0;
        while let (Some(family), Some(endings)) = (texts.next(), texts.next()) {
            for ending in endings.split(' ') {
                let kind = FileKind::of(format!("a.{ending}").as_bytes());
                let fits = match family {
                    "image" => kind == FileKind::Image,
                    "media" => matches!(kind, FileKind::Video | FileKind::Audio),
                    "text" => matches!(kind, FileKind::Text | FileKind::Document),
                    "archive" => kind == FileKind::Archive,
                    other => panic!("a family '{other}' that is not known here"),
                };
                assert!(fits, "{ending} is {kind:?} here and {family} in the app");
                known += 1;
            }
        }
        assert!(known > 40, "{known}");
    }

    #[test]
    fn files_are_counted_wherever_they_are_and_however_many_at_once() {
        let mut view = view();
        let files = vec![
            put(1, 0, "pictures", None),
            put(2, 1, "a.jpg", Some(100)),
            put(3, 1, "b.png", Some(20)),
            put(4, 1, "deep", None),
            put(5, 4, "c.jpg", Some(3)),
            put(6, 0, "plan.txt", Some(7)),
            put(7, 0, "gone.mp4", Some(1_000)),
            put(8, 0, "empty", Some(0)),
            put(9, 0, "nothing in it", None),
        ];
        take(&mut view, files);
        take(&mut view, vec![Change { node: node(7), base: 1, action: Action::Delete }]);
        let mut expected = FileUsage::default();
        expected.kinds[FileKind::Image as usize] = Sum { files: 3, bytes: 123 };
        expected.kinds[FileKind::Text as usize] = Sum { files: 1, bytes: 7 };
        expected.kinds[FileKind::Other as usize] = Sum { files: 1, bytes: 0 };
        expected.deleted = Sum { files: 1, bytes: 1_000 };
        for nodes_max in [1, 2, 3, 5, 1_000] {
            assert_eq!(count(&view, nodes_max), expected, "{nodes_max} at once");
        }
    }

    #[test]
    fn count_begins_anew_where_the_workspace_changes_but_not_for_ever() {
        let mut view = view();
        take(&mut view, (1..=9).map(|n| put(n, 0, &format!("{n}.txt"), Some(1))).collect());
        let mut count = UsageCount::new(&view);
        assert!(!count.step(&view, 4));
        take(&mut view, vec![Change { node: node(1), base: 1, action: Action::Delete }]);
        while !count.step(&view, 4) {}
        let (head, usage) = count.end();
        assert_eq!((head, usage.kinds[FileKind::Text as usize].files), (view.head(), 8));
        assert_eq!(usage.deleted, Sum { files: 1, bytes: 1 });

        let mut count = UsageCount::new(&view);
        let mut steps = 0;
        for n in 2..=9 {
            take(&mut view, vec![Change { node: node(n), base: 1, action: Action::Delete }]);
            steps += 1;
            if count.step(&view, 3) {
                break;
            }
        }
        assert!(steps < 8, "it never ends while somebody deletes");
        assert!(count.end().0.seq < view.head().seq);
    }
}
