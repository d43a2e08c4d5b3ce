use super::*;

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

#[test]
fn hostile_names_are_refused_by_type() {
    for bytes in [&b""[..], b".", b"..", b"a/b", b"/etc/passwd", b"a\0b", &[b'x'; 256]] {
        assert!(Name::new(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn any_other_bytes_are_a_name() {
    for bytes in [&b"..."[..], b"\xff\xfe", b"CON", &[b'x'; 255], b"a\nb", b" "] {
        assert_eq!(Name::new(bytes).expect("valid").as_bytes(), bytes);
    }
}

#[test]
fn hostile_paths_are_refused_by_type() {
    for bytes in [&b"/etc"[..], b"a//b", b"a/../b", b"a/", b"../a", b"a/./b"] {
        assert!(RelativePath::new(bytes).is_err(), "{bytes:?}");
    }
    let deep = vec!["a"; PATH_DEPTH_MAX + 1].join("/");
    assert!(RelativePath::new(deep.as_bytes()).is_err());
}

#[test]
fn conflict_label_stands_before_the_extension() {
    assert_eq!(name("report.odt").conflict("conflict v7", 0), name("report (conflict v7).odt"));
    assert_eq!(name("README").conflict("conflict v7", 1), name("README (conflict v7 2)"));
    assert_eq!(name(".bashrc").conflict("conflict v7", 0), name(".bashrc (conflict v7)"));
}

#[test]
fn conflict_labels_never_nest() {
    let once = name("report.odt").conflict("conflict v7", 0);
    assert_eq!(once.conflict("conflict v9", 0), name("report (conflict v9).odt"));
}

#[test]
fn conflict_name_of_a_longest_name_is_still_a_name() {
    for unit in ["x", "é", "漢"] {
        let long = name(&unit.repeat(255 / unit.len()));
        let kept = long.conflict("conflict v18446744073709551615", 9);
        assert!(kept.as_bytes().len() <= NAME_LENGTH_MAX);
        assert!(std::str::from_utf8(kept.as_bytes()).is_ok());
    }
    let all_extension = name(&format!("a.{}", "x".repeat(250)));
    assert!(all_extension.conflict("conflict v7", 0).as_bytes().len() <= NAME_LENGTH_MAX);
}

#[test]
fn names_that_pretend_are_escaped_on_screen() {
    assert_eq!(name("a\u{202e}gpj.exe").to_string(), "a\\u{202e}gpj.exe");
    assert_eq!(name("a\nb").to_string(), "a\\u{a}b");
}

#[test]
fn paths_split_and_join() {
    let path = RelativePath::new(b"a/b/c").expect("valid");
    let (directory, last) = path.split_last().expect("not the root");
    assert_eq!(directory.join(&last), Ok(path.clone()));
    assert!(path.starts_with(&directory) && !directory.starts_with(&path));
    assert!(
        !RelativePath::new(b"ab")
            .expect("valid")
            .starts_with(&RelativePath::new(b"a").expect("valid"))
    );
    assert_eq!(path.names().count(), path.depth());
}
