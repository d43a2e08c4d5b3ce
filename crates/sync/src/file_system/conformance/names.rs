//! Names are bytes, and none of them leads anywhere else.

use super::{
    Case, FileError, FileKind, Fixture, LONG_AGO, assert_refused, at, create, names, read, stage,
    stat, stat_there,
};

pub(super) const CASES: &[Case] = &[
    ("names that are no text work", names_that_are_no_text_work),
    ("names of 255 bytes work", names_of_255_bytes_work),
    ("deep paths work", deep_paths_work),
    ("names that look alike are different", names_that_look_alike_are_different),
    ("links keep any text", links_keep_any_text),
    ("a link is never followed", a_link_is_never_followed),
    ("a parent that is a link is refused", a_parent_that_is_a_link_is_refused),
    ("a parent that is a file is refused", a_parent_that_is_a_file_is_refused),
    ("the service directory is out of reach", the_service_directory_is_out_of_reach),
    ("the root itself stays", the_root_itself_stays),
];

fn names_that_are_no_text_work(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    for name in [&b"\xff\xfe"[..], b"a\xc3", b"line\nbreak", b"-rf", b" ", b"...", b"\x01", b"*?["]
    {
        let stat = create(&*files, name, name);
        assert_eq!(stat_there(&*files, name), stat);
        assert_eq!(read(&*files, name), name);
        assert_eq!(fixture.read_as_user(&at(name)).as_deref(), Some(name));
        assert_eq!(names(&*files, ""), [name]);
        let moved = [b"moved", name].concat();
        files.rename(&at(name), &at(&moved)).expect("it can be renamed");
        let stat = stat_there(&*files, &moved);
        files.trash(&at(&moved), &stat, "label").expect("it can be trashed");
    }
    assert_eq!(fixture.trash_as_user("label").len(), 8);
}

fn names_of_255_bytes_work(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let (name, inner) = (vec![b'n'; 255], vec![b'm'; 255]);
    files.make_directory(&at(&name), 0o755).expect("it can be made");
    let path = [&name[..], &inner].join(&b'/');
    let first = create(&*files, &path, b"one");
    stage(&*files, 1, b"two", 0o644, LONG_AGO);
    let second = files.install(1, &at(&path), Some(&first)).expect("it can be replaced");
    assert_eq!(read(&*files, &path), b"two");
    assert_eq!(names(&*files, &name), [inner]);
    files.trash(&at(&path), &second, "label").expect("it can be trashed");
    assert_eq!(fixture.trash_as_user("label").into_keys().collect::<Vec<_>>(), [at(&path)]);
}

fn deep_paths_work(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let mut path = Vec::new();
    // The longest path there may be has 4096 bytes, and the kernel takes 4095.
    for depth in 0..16 {
        path.extend(vec![b'd'; if depth < 15 { 255 } else { 200 }]);
        files.make_directory(&at(&path), 0o755).expect("it can be made");
        assert_eq!(names(&*files, &path), <[&[u8]; 0]>::default(), "at depth {depth}");
        path.push(b'/');
    }
    path.extend(vec![b'f'; 55]);
    assert_eq!(path.len(), 4096);
    let stat = create(&*files, &path, b"deep");
    assert_eq!(read(&*files, &path), b"deep");
    assert_eq!(stat_there(&*files, &path), stat);
    files.trash(&at(&path), &stat, "label").expect("it can be trashed");
    let narrow = ["n"; 128].join("/");
    for (slash, _) in narrow.match_indices('/') {
        files.make_directory(&at(&narrow[..slash]), 0o755).expect("it can be made");
    }
    create(&*files, &narrow, b"narrow");
    assert_eq!(read(&*files, &narrow), b"narrow");
}

fn names_that_look_alike_are_different(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let alike = ["File", "file", "FILE", "\u{e9}", "e\u{301}"];
    for name in alike {
        create(&*files, name, name.as_bytes());
    }
    for name in alike {
        assert_eq!(read(&*files, name), name.as_bytes());
    }
}

fn links_keep_any_text(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    for target in [&b"file"[..], b"../../etc/passwd", b"/etc/passwd", b"\xff\xfe", &[b't'; 1000]] {
        files.stage_link(1, target, LONG_AGO).expect("a link can be made aside");
        let stat = files.install(1, &at("link"), None).expect("a link can be installed");
        assert_eq!((stat.kind, stat.size, stat.mode), (FileKind::Symlink, 0, 0));
        assert_eq!(stat.modified, LONG_AGO);
        assert_eq!(files.read_link(&at("link")).expect("it is a link"), target);
        files.trash(&at("link"), &stat, "label").expect("it can be trashed");
    }
    fixture.write_as_user(&at("file"), b"no link");
    assert_refused!(files.read_link(&at("file")), FileError::Changed(_));
    assert_refused!(files.read_link(&at("nothing")), FileError::NotFound(_));
}

fn a_link_is_never_followed(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("target"), b"target");
    let target = stat_there(&*files, "target");
    fixture.link_as_user(&at("link"), b"target");
    let link = stat_there(&*files, "link");
    assert_eq!(link.kind, FileKind::Symlink);
    assert_refused!(files.open(&at("link")), FileError::Changed(_));
    assert_refused!(
        files.set_attributes(&at("link"), &target, 0o600, Some(LONG_AGO)),
        FileError::Changed(_)
    );
    files.set_attributes(&at("link"), &link, 0o600, Some(LONG_AGO)).expect("the link has a time");
    files.rename(&at("link"), &at("moved")).expect("a link can be renamed");
    assert_eq!(stat_there(&*files, "moved").kind, FileKind::Symlink);
    assert_eq!(stat_there(&*files, "target"), target);
}

/// Tries everything below a directory that is none.
fn assert_out_of_reach(fixture: &dyn Fixture, parent: &str) {
    let files = fixture.file_system();
    let inner = at(format!("{parent}/inner"));
    let free = at("free");
    let expected = create(&*files, "expected", b"expected");
    stage(&*files, 1, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.list(&at(parent)), FileError::Escapes(_));
    assert_refused!(files.stat(&inner), FileError::Escapes(_));
    assert_refused!(files.open(&inner), FileError::Escapes(_));
    assert_refused!(files.read_link(&inner), FileError::Escapes(_));
    assert_refused!(files.install(1, &inner, None), FileError::Escapes(_));
    assert_refused!(files.install(1, &inner, Some(&expected)), FileError::Escapes(_));
    assert_refused!(files.make_directory(&inner, 0o755), FileError::Escapes(_));
    assert_refused!(files.rename(&inner, &free), FileError::Escapes(_));
    assert_refused!(files.rename(&at("expected"), &inner), FileError::Escapes(_));
    assert_refused!(files.set_attributes(&inner, &expected, 0o600, None), FileError::Escapes(_));
    assert_refused!(files.trash(&inner, &expected, "label"), FileError::Escapes(_));
    assert_eq!(stat_there(&*files, "expected"), expected);
    files.install(1, &free, None).expect("what stands aside is still there");
}

fn a_parent_that_is_a_link_is_refused(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.make_directory_as_user(&at("real"));
    fixture.write_as_user(&at("real/inner"), b"theirs");
    fixture.link_as_user(&at("link"), b"real");
    assert_out_of_reach(fixture, "link");
    assert_eq!(read(&*files, "real/inner"), b"theirs");
    assert_eq!(names(&*files, "real"), [b"inner"]);
}

fn a_parent_that_is_a_file_is_refused(fixture: &dyn Fixture) {
    fixture.write_as_user(&at("file"), b"theirs");
    assert_out_of_reach(fixture, "file");
    assert_eq!(fixture.read_as_user(&at("file")).as_deref(), Some(&b"theirs"[..]));
}

fn the_service_directory_is_out_of_reach(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "expected", b"expected");
    assert_eq!(names(&*files, ""), [b"expected"]);
    stage(&*files, 1, b"ours", 0o644, LONG_AGO);
    for path in [".syncline", ".syncline/root", ".syncline/tmp/x"] {
        let path = at(path);
        assert!(files.list(&path).is_err());
        assert!(files.open(&path).is_err());
        assert!(files.install(1, &path, None).is_err());
        assert!(files.make_directory(&path, 0o755).is_err());
        assert!(files.rename(&at("expected"), &path).is_err());
        assert!(files.rename(&path, &at("free")).is_err());
        assert!(files.trash(&path, &expected, "label").is_err());
    }
    assert!(files.root_identity().expect("it can be read").is_some());
    // Only the root has one; below it the name is like any other.
    files.make_directory(&at("a"), 0o755).expect("it can be made");
    files.make_directory(&at("a/.syncline"), 0o755).expect("it can be made");
    assert_eq!(names(&*files, "a"), [b".syncline"]);
}

fn the_root_itself_stays(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let root = stat_there(&*files, "");
    assert_eq!(root.kind, FileKind::Directory);
    stage(&*files, 1, b"ours", 0o644, LONG_AGO);
    assert!(files.install(1, &at(""), None).is_err());
    assert!(files.install(1, &at(""), Some(&root)).is_err());
    assert!(files.make_directory(&at(""), 0o755).is_err());
    assert!(files.rename(&at(""), &at("free")).is_err());
    assert!(files.trash(&at(""), &root, "label").is_err());
    assert!(files.open(&at("")).is_err());
    assert_eq!(stat(&*files, "free"), None);
}
