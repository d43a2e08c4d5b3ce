use super::*;

fn entry(path: &str, size: Option<u64>) -> Entry {
    let content = size.map(|size| Content { size, ..Content::default() });
    let (path, modified) = (path.as_bytes().to_vec(), size.map(|_| 1_700_000_000));
    Entry { path, content, modified, mode: 0o640, offset: 0, checksum: 0 }
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a reader of the directory finds: path, length, offset, checksum.
fn read(layout: &Layout) -> Vec<(String, u64, u64, u64)> {
    let lines = layout.directory(0..layout.entries().len());
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        assert_eq!(number(&lines, at, 4), u64::from(LINE_SIGNATURE));
        let [mut size, mut offset] = [24, 42].map(|place| number(&lines, at + place, 4));
        let [name, extra] = [28, 30].map(|place| number(&lines, at + place, 2) as usize);
        let path = String::from_utf8(lines[at + 46..at + 46 + name].to_vec()).unwrap();
        let checksum = number(&lines, at + 16, 4);
        let extra = &lines[at + 46 + name..at + 46 + name + extra];
        let mut place = 4;
        if !extra.is_empty() && number(extra, 0, 2) == u64::from(ZIP_64) {
            if size == u64::from(u32::MAX) {
                assert_eq!(number(extra, place, 8), number(extra, place + 8, 8));
                size = number(extra, place, 8);
                place += 16;
            }
            if offset == u64::from(u32::MAX) {
                offset = number(extra, place, 8);
                place += 8;
            }
            assert_eq!(number(extra, 2, 2) as usize, place - 4);
        }
        found.push((path, size, offset, checksum));
        at += 46 + name + number(&lines, at + 30, 2) as usize;
    }
    found
}

#[test]
fn directory_finds_every_header_also_behind_four_gibibytes() {
    let large = u64::from(u32::MAX);
    let sizes = [None, Some(5), Some(large - 1), Some(large), Some(large * 3), Some(0)];
    let name = |index: usize| format!("folder/{index}");
    let entries = sizes.iter().enumerate().map(|(index, size)| entry(&name(index), *size));
    let mut layout = Layout::place(entries.collect());
    let mut offset = 0;
    for (index, size) in sizes.iter().enumerate() {
        let header = layout.header(index);
        let found = &read(&layout)[index];
        assert_eq!(*found, (name(index), size.unwrap_or(0), offset, 0));
        let after = size.map(|_| layout.finish(index, 77)).unwrap_or_default();
        assert_eq!(read(&layout)[index].3, if size.is_some() { 77 } else { 0 });
        let is_large = size.is_some_and(|size| size >= large);
        let length = if is_large { 24 } else { 16 };
        assert_eq!(after.len(), if size.is_some() { length } else { 0 });
        offset += (header.len() + after.len()) as u64 + size.unwrap_or(0);
    }
    let end = layout.end();
    let lines = layout.directory(0..sizes.len()).len() as u64;
    assert_eq!(layout.length(), offset + lines + end.len() as u64);
    // With ZIP64 there are two ends, and what leads from one to the other.
    assert_eq!(end.len(), 56 + 20 + 22);
    assert_eq!([24, 40, 48].map(|at| number(&end, at, 8)), [6, lines, offset]);
    assert_eq!(number(&end, 56 + 8, 8), offset + lines);
}

#[test]
fn many_entries_are_counted_with_64_bits_and_few_are_not() {
    let layout = |count: usize| Layout::place((0..count).map(|_| entry("x", Some(1))).collect());
    assert_eq!(layout(0).end().len(), 22);
    assert_eq!(layout(65_534).end().len(), 22);
    let many = layout(65_535).end();
    assert_eq!((many.len(), number(&many, 32, 8)), (98, 65_535));
}

fn record(name: &str, kind: NodeKind) -> NodeRecord {
    NodeRecord {
        parent: model::NodeId::ROOT,
        name: model::Name::new(name).unwrap(),
        mode: 0o640,
        modified: model::Timestamp::default(),
        kind,
        conflict: None,
    }
}

#[test]
fn folder_comes_before_what_is_in_it_and_no_name_leads_out_of_it() {
    let file = || NodeKind::File(Content::default());
    let inside = |folder: &u8| match folder {
        0 => vec![
            (1, record("deep", NodeKind::Directory)),
            (2, record(r"x\y", file())),
            (3, record("x_y", file())),
            (4, record("link", NodeKind::Symlink(b"/etc/passwd".to_vec()))),
        ],
        _ => vec![(5, record(r"..\..\z", file()))],
    };
    let member = |(key, record)| Member { key, record };
    let list = |folder: &u8| inside(folder).into_iter().map(member).collect();
    let layout = Layout::of(vec![member((0, record("C:", NodeKind::Directory)))], list).unwrap();
    let paths: Vec<_> =
        layout.entries().iter().map(|entry| str::from_utf8(entry.path()).unwrap()).collect();
    assert_eq!(paths, ["C_/", "C_/deep/", "C_/deep/.._.._z", "C_/x_y (2)", "C_/x_y"]);
}

#[test]
fn archive_has_no_more_in_it_than_it_may() {
    let file = record("x", NodeKind::File(Content::default()));
    let many = |count| vec![Member { key: (), record: file.clone() }; count];
    assert_eq!(
        Layout::of(many(ENTRIES_MAX), |()| Vec::new()).unwrap().entries().len(),
        ENTRIES_MAX
    );
    let error = Layout::of(many(ENTRIES_MAX + 1), |()| Vec::new()).unwrap_err();
    assert!(matches!(error, ContentError::TooMuchToArchive { max: ENTRIES_MAX }));
}

#[test]
fn layout_is_weighed_before_it_is_made() {
    let chunk = model::ChunkRef { id: model::ChunkId::from_bytes([9; 32]), length: 1 };
    let file = |chunks: usize| {
        NodeKind::File(Content { size: 7, chunks: vec![chunk; chunks], ..Content::default() })
    };
    let records = [
        record("top", NodeKind::Directory),
        record("deep", NodeKind::Directory),
        record("link", NodeKind::Symlink(b"/etc/passwd".to_vec())),
        record("one", file(1)),
        record("three", file(3)),
    ];
    let inside = |folder: &usize| match folder {
        0 => vec![1, 2, 3],
        _ => vec![4],
    };
    let lent = |index: usize| (index, &records[index]);
    let weighed =
        Layout::weigh(vec![lent(0)], |folder| inside(folder).into_iter().map(lent).collect());
    let member = |index: usize| Member { key: index, record: records[index].clone() };
    let list = |folder: &usize| inside(folder).into_iter().map(member).collect();
    let layout = Layout::of(vec![member(0)], list).unwrap();
    assert_eq!((layout.entries().len(), weighed.unwrap()), (4, layout.weight()));

    let many = |count| Layout::weigh(vec![((), &records[3]); count], |()| Vec::new());
    assert!(many(ENTRIES_MAX).is_ok());
    let error = many(ENTRIES_MAX + 1).unwrap_err();
    assert!(matches!(error, ContentError::TooMuchToArchive { max: ENTRIES_MAX }));
}

#[test]
fn times_are_local_ones_without_a_zone_and_those_of_unix() {
    let header = entry("x", Some(1)).header();
    // 2023-11-14 22:13:20.
    assert_eq!(number(&header, 12, 2), 43 << 9 | 11 << 5 | 14);
    assert_eq!(number(&header, 10, 2), 22 << 11 | 13 << 5 | 10);
    assert_eq!(number(&header, header.len() - 4, 4), 1_700_000_000);
}
