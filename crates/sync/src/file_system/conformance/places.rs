//! Directories, moves, listings and the identity of the root.

use super::{
    Case, FileError, FileKind, Fixture, assert_refused, at, create, names, read, stat, stat_there,
};

pub(super) const CASES: &[Case] = &[
    ("what is not there is not found", what_is_not_there_is_not_found),
    ("listing shows each entry once with its stat", listing_shows_each_entry_once),
    ("a large directory is listed whole", a_large_directory_is_listed_whole),
    ("a directory has its mode and no other", a_directory_has_its_mode),
    ("a directory is not made over anything", a_directory_is_not_made_over_anything),
    ("renaming keeps identity and content", renaming_keeps_identity_and_content),
    ("renaming replaces nothing", renaming_replaces_nothing),
    ("a directory moves with what it holds", a_directory_moves_with_what_it_holds),
    ("a directory does not move into itself", a_directory_does_not_move_into_itself),
    ("a moved directory is found at its new place only", a_moved_directory_is_found_anew),
    ("every touch of a user shows in the stat", every_touch_shows_in_the_stat),
    ("only files can be opened", only_files_can_be_opened),
    ("the identity of the root can be set again", the_identity_can_be_set_again),
];

fn what_is_not_there_is_not_found(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"content");
    assert_eq!(stat(&*files, "nothing"), None);
    assert_eq!(stat(&*files, "nothing/inner"), None);
    assert_refused!(files.open(&at("nothing")), FileError::NotFound(_));
    assert_refused!(files.list(&at("nothing")), FileError::NotFound(_));
    assert_refused!(files.rename(&at("nothing"), &at("free")), FileError::NotFound(_));
    assert_refused!(files.rename(&at("file"), &at("nothing/file")), FileError::NotFound(_));
    assert_refused!(files.make_directory(&at("nothing/inner"), 0o755), FileError::NotFound(_));
    assert_refused!(files.install(9, &at("free"), None), FileError::NotFound(_));
    assert_eq!(stat_there(&*files, "file"), expected);
}

fn listing_shows_each_entry_once(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("file"), b"content");
    fixture.make_directory_as_user(&at("directory"));
    fixture.write_as_user(&at("directory/inner"), b"inner");
    fixture.link_as_user(&at("link"), b"file");
    let mut entries = files.list(&at("")).expect("the root can be listed");
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let kinds: Vec<_> =
        entries.iter().map(|entry| (entry.name.as_slice(), entry.stat.kind)).collect();
    assert_eq!(
        kinds,
        [
            (&b"directory"[..], FileKind::Directory),
            (b"file", FileKind::File),
            (b"link", FileKind::Symlink)
        ]
    );
    for entry in &entries {
        assert_eq!(entry.stat, stat_there(&*files, &entry.name));
    }
    assert_eq!(names(&*files, "directory"), [b"inner"]);
}

fn a_large_directory_is_listed_whole(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let mut expected = Vec::new();
    for number in 0..2500 {
        let name = format!("a name that is not short at all, number {number:08}");
        fixture.write_as_user(&at(&name), b"");
        expected.push(name.into_bytes());
    }
    assert_eq!(names(&*files, ""), expected);
}

fn a_directory_has_its_mode(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    for (number, mode) in [0o777, 0o755, 0o700, 0o500].into_iter().enumerate() {
        let path = at(format!("directory{number}"));
        let made = files.make_directory(&path, mode).expect("it can be made");
        assert_eq!((made.kind, made.mode, made.size), (FileKind::Directory, mode, 0));
        assert_eq!(stat_there(&*files, path.as_bytes()), made);
    }
}

fn a_directory_is_not_made_over_anything(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("file"), b"content");
    fixture.make_directory_as_user(&at("directory"));
    fixture.link_as_user(&at("link"), b"directory");
    for path in ["file", "directory", "link"] {
        let before = stat_there(&*files, path);
        assert_refused!(files.make_directory(&at(path), 0o700), FileError::AlreadyExists(_));
        assert_eq!(stat_there(&*files, path), before);
    }
}

fn renaming_keeps_identity_and_content(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let before = create(&*files, "file", b"content");
    files.make_directory(&at("directory"), 0o755).expect("it can be made");
    let after = files.rename(&at("file"), &at("directory/moved")).expect("it can be renamed");
    assert_eq!(after, stat_there(&*files, "directory/moved"));
    assert_eq!((after.inode, after.size), (before.inode, before.size));
    assert_eq!((after.modified, after.mode), (before.modified, before.mode));
    assert_eq!(read(&*files, "directory/moved"), b"content");
    assert_eq!(stat(&*files, "file"), None);
}

fn renaming_replaces_nothing(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    create(&*files, "file", b"content");
    fixture.write_as_user(&at("taken"), b"theirs");
    fixture.make_directory_as_user(&at("empty"));
    fixture.make_directory_as_user(&at("directory"));
    fixture.link_as_user(&at("link"), b"nowhere");
    for taken in ["taken", "empty", "link"] {
        assert_refused!(files.rename(&at("file"), &at(taken)), FileError::AlreadyExists(_));
        assert_refused!(files.rename(&at("directory"), &at(taken)), FileError::AlreadyExists(_));
    }
    assert_eq!(read(&*files, "file"), b"content");
    assert_eq!(read(&*files, "taken"), b"theirs");
    assert_eq!(names(&*files, ""), [&b"directory"[..], b"empty", b"file", b"link", b"taken"]);
}

fn a_directory_moves_with_what_it_holds(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let before = files.make_directory(&at("one"), 0o755).expect("it can be made");
    files.make_directory(&at("one/inner"), 0o755).expect("it can be made");
    create(&*files, "one/inner/file", b"content");
    let after = files.rename(&at("one"), &at("two")).expect("it can be moved");
    assert_eq!(after.inode, before.inode);
    assert_eq!(read(&*files, "two/inner/file"), b"content");
    assert_eq!(stat(&*files, "one"), None);
}

fn a_directory_does_not_move_into_itself(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    files.make_directory(&at("one"), 0o755).expect("it can be made");
    files.make_directory(&at("one/two"), 0o755).expect("it can be made");
    assert!(files.rename(&at("one"), &at("one/two/three")).is_err());
    assert!(files.rename(&at("one"), &at("one/three")).is_err());
    assert_eq!(names(&*files, "one"), [b"two"]);
}

fn a_moved_directory_is_found_anew(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    files.make_directory(&at("one"), 0o755).expect("it can be made");
    create(&*files, "one/file", b"first");
    // A user moves it away and makes another of the same name: what is written now belongs into the other.
    fixture.rename_as_user(&at("one"), &at("two"));
    fixture.make_directory_as_user(&at("one"));
    assert_eq!(stat(&*files, "one/file"), None);
    create(&*files, "one/file", b"second");
    assert_eq!(read(&*files, "one/file"), b"second");
    assert_eq!(read(&*files, "two/file"), b"first");
    assert_eq!(names(&*files, "two"), [b"file"]);
}

fn every_touch_shows_in_the_stat(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let mut before = create(&*files, "file", b"content");
    let touches: [fn(&dyn Fixture); 4] = [
        |fixture| fixture.write_as_user(&at("file"), b"CONTENT"),
        |fixture| fixture.write_as_user(&at("file"), b"longer content"),
        |fixture| fixture.set_mode_as_user(&at("file"), 0o600),
        |fixture| {
            fixture.write_as_user(&at("other"), b"longer CONTENT");
            fixture.rename_as_user(&at("other"), &at("file"));
        },
    ];
    for (number, touch) in touches.into_iter().enumerate() {
        touch(fixture);
        let after = stat_there(&*files, "file");
        assert_ne!(after, before, "touch {number}");
        before = after;
    }
    assert_eq!(stat_there(&*files, "file"), before, "looking is no touch");
    read(&*files, "file");
    assert_eq!(stat_there(&*files, "file"), before, "reading is no touch");
}

fn only_files_can_be_opened(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.make_directory_as_user(&at("directory"));
    fixture.link_as_user(&at("link"), b"directory");
    assert_refused!(files.open(&at("directory")), FileError::Changed(_));
    assert_refused!(files.open(&at("link")), FileError::Changed(_));
    fixture.write_as_user(&at("file"), b"content");
    let open = files.open(&at("file")).expect("a file can be opened");
    assert_eq!(open.stat().expect("it has a stat"), stat_there(&*files, "file"));
}

fn the_identity_can_be_set_again(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    assert!(files.root_identity().expect("it can be read").is_some());
    for identity in [[0; 16], [0xff; 16], *b"0123456789abcdef"] {
        files.set_root_identity(identity).expect("it can be set");
        assert_eq!(files.root_identity().expect("it can be read"), Some(identity));
    }
    assert_eq!(names(&*files, ""), <[&[u8]; 0]>::default());
}
