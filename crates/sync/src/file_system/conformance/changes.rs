//! Files come, change and go, and no edit is lost.

use super::{
    Case, FileError, FileKind, Fixture, LONG_AGO, RelativePath, Timestamp, assert_refused, at,
    create, names, read, stage, stat, stat_there,
};

pub(super) const CASES: &[Case] = &[
    ("installed file has content, mode and time", installed_file_has_content_mode_and_time),
    ("install returns the stat of what was installed", install_returns_the_stat),
    ("install over something is refused and keeps both", install_over_something_is_refused),
    ("replacing gives the new content and removes the old", replacing_gives_the_new_content),
    ("replacing an edited file is refused and keeps the edit", replacing_an_edited_file),
    ("replacing a file saved by rename is refused", replacing_a_file_saved_by_rename),
    ("replacing a removed file is refused", replacing_a_removed_file),
    ("replacing a file of another mode is refused", replacing_a_file_of_another_mode),
    ("a refused replacement can be tried again", a_refused_replacement_can_be_tried_again),
    ("a link can be replaced by a file and back", a_link_can_be_replaced_by_a_file),
    ("an empty directory can be replaced by a file", an_empty_directory_can_be_replaced),
    ("a full directory is not replaced", a_full_directory_is_not_replaced),
    ("what is replaced is kept in the trash", what_is_replaced_is_kept_in_the_trash),
    ("an edit is neither replaced nor trashed", an_edit_is_neither_replaced_nor_trashed),
    ("discarded and dropped files are gone", discarded_and_dropped_files_are_gone),
    ("a token is used once", a_token_is_used_once),
    ("trash keeps the path and the content", trash_keeps_the_path_and_the_content),
    ("trash keeps files of one name apart", trash_keeps_files_of_one_name_apart),
    ("trash of an edited file is refused and keeps it", trash_of_an_edited_file_is_refused),
    ("trash removes an empty directory only", trash_removes_an_empty_directory_only),
    ("attributes are set on what is expected", attributes_are_set_on_what_is_expected),
    ("attributes of an edited file stay", attributes_of_an_edited_file_stay),
    ("negative and fractional times are kept", negative_and_fractional_times_are_kept),
    ("an open file keeps its content when it is replaced", an_open_file_keeps_its_content),
    ("durability can be asked for at any time", durability_can_be_asked_for),
];

fn installed_file_has_content_mode_and_time(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    stage(&*files, 7, b"content", 0o640, LONG_AGO);
    files.install(7, &at("file"), None).expect("it can be installed");
    assert_eq!(fixture.read_as_user(&at("file")).as_deref(), Some(&b"content"[..]));
    let stat = stat_there(&*files, "file");
    assert_eq!(
        (stat.kind, stat.size, stat.mode, stat.modified),
        (FileKind::File, 7, 0o640, LONG_AGO)
    );
    stage(&*files, 8, b"", 0o4755, LONG_AGO);
    let empty = files.install(8, &at("empty"), None).expect("an empty file can be installed");
    assert_eq!((empty.size, empty.mode), (0, 0o755), "only permission bits are set");
}

fn install_returns_the_stat(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let created = create(&*files, "file", b"one");
    assert_eq!(created, stat_there(&*files, "file"));
    stage(&*files, 2, b"two", 0o644, LONG_AGO);
    let replaced = files.install(2, &at("file"), Some(&created)).expect("it can be replaced");
    assert_eq!(replaced, stat_there(&*files, "file"));
    assert_ne!(replaced, created);
}

fn install_over_something_is_refused(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("file"), b"theirs");
    fixture.make_directory_as_user(&at("directory"));
    fixture.link_as_user(&at("link"), b"nowhere");
    stage(&*files, 1, b"ours", 0o644, LONG_AGO);
    for path in ["file", "directory", "link"] {
        assert_refused!(files.install(1, &at(path), None), FileError::AlreadyExists(_));
    }
    assert_eq!(read(&*files, "file"), b"theirs");
    files.install(1, &at("free"), None).expect("what stands aside is still there");
    assert_eq!(read(&*files, "free"), b"ours");
}

fn replacing_gives_the_new_content(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("file"), b"old");
    let expected = stat_there(&*files, "file");
    stage(&*files, 1, b"newer", 0o600, LONG_AGO);
    files.install(1, &at("file"), Some(&expected)).expect("it can be replaced");
    assert_eq!(fixture.read_as_user(&at("file")).as_deref(), Some(&b"newer"[..]));
    assert_eq!(names(&*files, ""), [b"file"]);
    assert_refused!(files.install(1, &at("again"), None), FileError::NotFound(_));
}

fn replacing_an_edited_file(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file"), b"new");
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.install(2, &at("file"), Some(&expected)), FileError::Changed(_));
    assert_eq!(fixture.read_as_user(&at("file")).as_deref(), Some(&b"new"[..]));
}

fn replacing_a_file_saved_by_rename(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file.new"), b"new");
    fixture.rename_as_user(&at("file.new"), &at("file"));
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.install(2, &at("file"), Some(&expected)), FileError::Changed(_));
    assert_eq!(read(&*files, "file"), b"new");
}

fn replacing_a_removed_file(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.remove_as_user(&at("file"));
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.install(2, &at("file"), Some(&expected)), FileError::Changed(_));
    assert_eq!(stat(&*files, "file"), None);
}

fn replacing_a_file_of_another_mode(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.set_mode_as_user(&at("file"), 0o755);
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.install(2, &at("file"), Some(&expected)), FileError::Changed(_));
    assert_eq!(stat_there(&*files, "file").mode, 0o755);
    assert_eq!(read(&*files, "file"), b"old");
}

fn a_refused_replacement_can_be_tried_again(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file"), b"edited");
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.install(2, &at("file"), Some(&expected)), FileError::Changed(_));
    let expected = stat_there(&*files, "file");
    files.install(2, &at("file"), Some(&expected)).expect("now it is what is expected");
    assert_eq!(read(&*files, "file"), b"ours");
}

fn a_link_can_be_replaced_by_a_file(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.link_as_user(&at("name"), b"elsewhere");
    let link = stat_there(&*files, "name");
    stage(&*files, 1, b"file", 0o644, LONG_AGO);
    let file = files.install(1, &at("name"), Some(&link)).expect("a link can be replaced");
    assert_eq!((file.kind, read(&*files, "name")), (FileKind::File, b"file".to_vec()));
    files.stage_link(2, b"back", LONG_AGO).expect("a link can be made aside");
    let link = files.install(2, &at("name"), Some(&file)).expect("a file can be replaced");
    assert_eq!(link.kind, FileKind::Symlink);
    assert_eq!(files.read_link(&at("name")).expect("it is a link"), b"back");
}

fn an_empty_directory_can_be_replaced(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let directory = files.make_directory(&at("name"), 0o755).expect("it can be made");
    stage(&*files, 1, b"file", 0o644, LONG_AGO);
    files.install(1, &at("name"), Some(&directory)).expect("it can be replaced");
    assert_eq!(read(&*files, "name"), b"file");
}

fn a_full_directory_is_not_replaced(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let directory = files.make_directory(&at("name"), 0o755).expect("it can be made");
    fixture.write_as_user(&at("name/inner"), b"inner");
    stage(&*files, 1, b"file", 0o644, LONG_AGO);
    let refused = files.install(1, &at("name"), Some(&directory));
    assert_refused!(refused, FileError::NotEmpty(_) | FileError::Changed(_));
    assert_eq!(read(&*files, "name/inner"), b"inner");
    files.install(1, &at("free"), None).expect("what stands aside is still there");
}

fn what_is_replaced_is_kept_in_the_trash(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    files.make_directory(&at("a"), 0o755).expect("it can be made");
    let mut expected = create(&*files, "a/file", b"old");
    for (token, bytes) in [(2, b"newer"), (3, b"third")] {
        stage(&*files, token, bytes, 0o600, LONG_AGO);
        expected = files.replace(token, &at("a/file"), &expected, "label").expect("it is replaced");
        assert_eq!(expected, stat_there(&*files, "a/file"));
        assert_eq!(read(&*files, "a/file"), bytes);
        assert_refused!(files.install(token, &at("again"), None), FileError::NotFound(_));
    }
    fixture.link_as_user(&at("link"), b"elsewhere");
    let link = stat_there(&*files, "link");
    stage(&*files, 4, b"file", 0o644, LONG_AGO);
    files.replace(4, &at("link"), &link, "label").expect("a link can be replaced");
    let directory = files.make_directory(&at("empty"), 0o755).expect("it can be made");
    stage(&*files, 5, b"file", 0o644, LONG_AGO);
    files.replace(5, &at("empty"), &directory, "label").expect("an empty directory can be");
    assert_eq!(read(&*files, "empty"), b"file");
    let mut kept: Vec<_> = fixture.trash_as_user("label").into_values().collect();
    kept.sort();
    assert_eq!(kept, [&b"elsewhere"[..], b"newer", b"old"]);
}

fn an_edit_is_neither_replaced_nor_trashed(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file"), b"edited");
    stage(&*files, 2, b"ours", 0o644, LONG_AGO);
    assert_refused!(files.replace(2, &at("file"), &expected, "label"), FileError::Changed(_));
    assert_eq!(read(&*files, "file"), b"edited");
    fixture.remove_as_user(&at("file"));
    assert_refused!(files.replace(2, &at("file"), &expected, "label"), FileError::Changed(_));
    assert_eq!(stat(&*files, "file"), None);
    files.install(2, &at("file"), None).expect("what stands aside is still there");
    assert_eq!(fixture.trash_as_user("label").len(), 0);
}

fn discarded_and_dropped_files_are_gone(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    drop(files.stage(1).expect("it can be started"));
    assert_refused!(files.install(1, &at("file"), None), FileError::NotFound(_));
    stage(&*files, 1, b"again", 0o644, LONG_AGO);
    files.discard(1).expect("it can be discarded");
    files.discard(1).expect("absent is fine");
    assert_refused!(files.install(1, &at("file"), None), FileError::NotFound(_));
    files.stage_link(1, b"target", LONG_AGO).expect("the token is free again");
    files.discard(1).expect("a link can be discarded");
    assert_eq!(names(&*files, ""), <[&[u8]; 0]>::default());
}

fn a_token_is_used_once(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    stage(&*files, 1, b"first", 0o644, LONG_AGO);
    assert_refused!(files.stage(1), FileError::AlreadyExists(_));
    assert_refused!(files.stage_link(1, b"to", LONG_AGO), FileError::AlreadyExists(_));
    files.install(1, &at("file"), None).expect("the first is still there");
    assert_eq!(read(&*files, "file"), b"first");
}

fn trash_keeps_the_path_and_the_content(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    files.make_directory(&at("a"), 0o755).expect("it can be made");
    files.make_directory(&at("a/b"), 0o755).expect("it can be made");
    let file = create(&*files, "a/b/file", b"content");
    fixture.link_as_user(&at("a/link"), b"target");
    let link = stat_there(&*files, "a/link");
    files.trash(&at("a/b/file"), &file, "label").expect("a file can be trashed");
    files.trash(&at("a/link"), &link, "label").expect("a link can be trashed");
    assert_eq!(stat(&*files, "a/b/file"), None);
    assert_eq!(stat(&*files, "a/link"), None);
    let expected = [(at("a/b/file"), b"content".to_vec()), (at("a/link"), b"target".to_vec())];
    assert_eq!(fixture.trash_as_user("label"), expected.into());
}

fn trash_keeps_files_of_one_name_apart(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let long = vec![b'n'; 255];
    for content in [b"one", b"two"] {
        for name in [&b"file"[..], &long] {
            let stat = create(&*files, name, content);
            files.trash(&at(name), &stat, "label").expect("it can be trashed");
        }
    }
    // What is a file in the trash already becomes a directory there.
    files.make_directory(&at("file"), 0o755).expect("it can be made");
    let inner = create(&*files, "file/inner", b"three");
    files.trash(&at("file/inner"), &inner, "label").expect("it can be trashed");
    let mut contents: Vec<_> = fixture.trash_as_user("label").into_values().collect();
    contents.sort();
    assert_eq!(contents, [&b"one"[..], b"one", b"three", b"two", b"two"]);
}

fn trash_of_an_edited_file_is_refused(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file"), b"new");
    assert_refused!(files.trash(&at("file"), &expected, "label"), FileError::Changed(_));
    assert_eq!(read(&*files, "file"), b"new");
    fixture.remove_as_user(&at("file"));
    assert_refused!(files.trash(&at("file"), &expected, "label"), FileError::Changed(_));
    assert_eq!(fixture.trash_as_user("label").len(), 0);
}

fn trash_removes_an_empty_directory_only(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let directory = files.make_directory(&at("directory"), 0o755).expect("it can be made");
    let inner = create(&*files, "directory/inner", b"inner");
    assert_refused!(files.trash(&at("directory"), &directory, "label"), FileError::NotEmpty(_));
    files.trash(&at("directory/inner"), &inner, "label").expect("a file can be trashed");
    files.trash(&at("directory"), &directory, "label").expect("it is empty now");
    assert_eq!(stat(&*files, "directory"), None);
    fixture.write_as_user(&at("directory"), b"a file");
    assert_refused!(files.trash(&at("directory"), &directory, "label"), FileError::Changed(_));
}

fn attributes_are_set_on_what_is_expected(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    fixture.write_as_user(&at("file"), b"content");
    let file = stat_there(&*files, "file");
    let after = files.set_attributes(&at("file"), &file, 0o400, Some(LONG_AGO));
    let after = after.expect("they can be set");
    assert_eq!((after.mode, after.modified, after.size), (0o400, LONG_AGO, 7));
    assert_eq!(after, stat_there(&*files, "file"));
    let later = Timestamp { seconds: 2_000_000_000, nanoseconds: 1 };
    let unreadable = files.set_attributes(&at("file"), &after, 0, Some(later));
    let unreadable = unreadable.expect("they can be set");
    let after = files.set_attributes(&at("file"), &unreadable, 0o644, Some(LONG_AGO));
    let after = after.expect("a file that nobody may read can be changed");
    assert_eq!((after.mode, after.modified), (0o644, LONG_AGO));
    let directory = files.make_directory(&at("directory"), 0o755).expect("it can be made");
    let after = files.set_attributes(&at("directory"), &directory, 0o700, None);
    assert_eq!(after.expect("they can be set").mode, 0o700);
    assert_eq!(stat_there(&*files, "directory").mode, 0o700);
}

fn attributes_of_an_edited_file_stay(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old");
    fixture.write_as_user(&at("file"), b"new");
    let edited = stat_there(&*files, "file");
    let refused = files.set_attributes(&at("file"), &expected, 0o600, Some(LONG_AGO));
    assert_refused!(refused, FileError::Changed(_));
    assert_eq!(stat_there(&*files, "file"), edited);
    fixture.remove_as_user(&at("file"));
    let refused = files.set_attributes(&at("file"), &expected, 0o600, Some(LONG_AGO));
    assert_refused!(refused, FileError::Changed(_));
}

fn negative_and_fractional_times_are_kept(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let times = [
        Timestamp { seconds: -1, nanoseconds: 999_999_999 },
        Timestamp { seconds: -86_400 * 365, nanoseconds: 1 },
        Timestamp { seconds: 0, nanoseconds: 0 },
        Timestamp { seconds: 4_102_444_800, nanoseconds: 500_000_001 },
    ];
    for (number, time) in times.into_iter().enumerate() {
        let path = RelativePath::new(format!("file{number}").as_bytes()).expect("it is valid");
        stage(&*files, 1, b"content", 0o644, time);
        let stat = files.install(1, &path, None).expect("it can be installed");
        assert_eq!(stat.modified, time);
        assert_eq!(stat_there(&*files, path.as_bytes()).modified, time);
    }
}

fn an_open_file_keeps_its_content(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    let expected = create(&*files, "file", b"old content");
    let mut open = files.open(&at("file")).expect("it can be opened");
    stage(&*files, 2, b"new", 0o644, LONG_AGO);
    files.install(2, &at("file"), Some(&expected)).expect("it can be replaced");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut *open, &mut bytes).expect("it can be read");
    assert_eq!(bytes, b"old content");
    let of_open = open.stat().expect("the stat of an open file can be had");
    assert_eq!((of_open.inode, of_open.size), (expected.inode, 11));
    assert_eq!(read(&*files, "file"), b"new");
}

fn durability_can_be_asked_for(fixture: &dyn Fixture) {
    let files = fixture.file_system();
    files.make_durable().expect("nothing is durable at once");
    create(&*files, "file", b"content");
    files.make_durable().expect("a file can be made durable");
    assert_eq!(read(&*files, "file"), b"content");
}
