use model::RelativePath;

use super::{BUILT_IN_RULES, IgnoreRules, RULES_LENGTH_MAX, RULES_MAX};

fn at(path: impl AsRef<[u8]>) -> RelativePath {
    RelativePath::new(path.as_ref()).unwrap()
}

fn rules(text: &str) -> IgnoreRules {
    let (rules, warnings) = IgnoreRules::parse(text.as_bytes());
    assert_eq!(warnings, []);
    rules
}

/// Checks files, and directories where the path ends with `/`.
fn assert_rules(rules: &IgnoreRules, ignored: &[&str], synced: &[&str]) {
    let is_ignored = |path: &str| match path.strip_suffix('/') {
        Some(directory) => rules.is_ignored(&at(directory), true),
        None => rules.is_ignored(&at(path), false),
    };
    for path in ignored {
        assert!(is_ignored(path), "'{path}' is not ignored");
    }
    for path in synced {
        assert!(!is_ignored(path), "'{path}' is ignored");
    }
}

#[test]
fn temporary_files_are_ignored_and_a_users_own_are_not() {
    assert_rules(
        &IgnoreRules::default(),
        &[
            ".report.odt.swp",
            "a/b/.x.swo",
            ".#main.rs",
            "~$letter.docx",
            ".~lock.table.ods#",
            "4913",
            "film.mkv.part",
            "setup.crdownload",
            ".DS_Store",
            "Thumbs.db",
            "a/desktop.ini",
            ".nfs0000000001",
            ".fuse_hidden0001",
            "lost+found/",
            ".stfolder/",
            ".sync/",
            ".dropbox.cache/",
            ".dropbox.cache/2026/x",
            ".goutputstream-AB12CD",
        ],
        &[
            "report.odt",
            "notes~",
            "#notes#",
            "letter.docx.bak",
            "4913/",
            "4913/photo.jpg",
            "14913",
            "part",
            "department",
            ".gitignore",
            ".git/",
            "lost+found",
            ".sync",
            "thumbs.db2",
            ".~lock.table.ods",
            "swp",
            "a.swp/",
        ],
    );
}

#[test]
fn built_in_rules_have_at_most_one_star_and_nothing_else_special() {
    for rule in BUILT_IN_RULES {
        assert!(rule.matches('*').count() <= 1, "{rule}");
        assert!(!rule.contains(['?', '[', '\\', '!']), "{rule}");
    }
}

#[test]
fn service_directory_is_always_ignored_and_the_rules_never() {
    for text in ["", "!.syncline\n!.syncline/\n", ".*\n", ".synclineignore\n*\n"] {
        let rules = rules(text);
        assert_rules(
            &rules,
            &[".syncline/", ".syncline/root", ".syncline/tmp/0001", "a/.syncline/", "a/.syncline"],
            &[".synclineignore"],
        );
    }
    assert!(rules("a/\n").is_ignored(&at("a/.synclineignore"), false));
}

#[test]
fn users_rules_follow_gitignore() {
    let rules = rules(
        "# a comment\n\n*.o\n!keep.o\n/top\nbuild/\ndoc/*.pdf\n**/cache/**\nspaces\\ \n\\#hash\n\
         a?c\n[xyz].dat\n*.log\n!/logs/*.log\n",
    );
    assert_rules(
        &rules,
        &[
            "main.o",
            "a/b/main.o",
            "top",
            "top/",
            "build/",
            "a/build/",
            "a/build/x/y",
            "doc/a.pdf",
            "cache/x",
            "a/cache/b/c",
            "spaces ",
            "#hash",
            "abc",
            "x.dat",
            "a.log",
        ],
        &[
            "main.c",
            "keep.o",
            "a/keep.o",
            "a/top",
            "build",
            "doc/a/b.pdf",
            "a/doc/a.pdf",
            "spaces",
            "hash",
            "abbc",
            "w.dat",
            "logs/a.log",
        ],
    );
}

#[test]
fn users_rule_takes_in_what_is_built_in() {
    let rules = rules("!*.part\n!.DS_Store\n!.stfolder/\n");
    assert_rules(
        &rules,
        &["a.crdownload", "Thumbs.db"],
        &["a.part", "b/c.part", ".DS_Store", ".stfolder/", ".stfolder/x"],
    );
}

#[test]
fn nothing_below_an_ignored_directory_is_taken_in_again() {
    let rules = rules("target/\n!target/keep\n");
    assert_rules(&rules, &["target/", "target/keep", "target/a/b"], &["target", "keep"]);
    assert!(!rules.is_entry_ignored(&at("target/keep"), false), "a walk never gets there");
    assert!(rules.is_entry_ignored(&at("target"), true));
}

#[test]
fn deeper_rules_win_over_those_from_above() {
    let mut rules = rules("*.tmp\n/one/only\n");
    assert_eq!(rules.add(&at("a"), b"!*.tmp\n/only\n"), []);
    assert_eq!(rules.add(&at("a/b"), b"*.tmp\n"), []);
    assert_rules(
        &rules,
        &["x.tmp", "c/x.tmp", "a/b/x.tmp", "a/b/c/x.tmp", "a/only", "one/only", "ab/x.tmp"],
        &["a/x.tmp", "a/c/x.tmp", "only", "a/b/only", "ab/only"],
    );
    assert_eq!(rules.add(&at("a"), b""), []);
    assert_rules(&rules, &["a/x.tmp"], &["a/only"]);
}

#[test]
fn names_that_are_no_text_are_matched_by_bytes() {
    let rules = rules("*.tmp\nbuild/\n");
    assert!(rules.is_ignored(&at(b"\xff\xfe.tmp"), false));
    assert!(rules.is_ignored(&at(b"\xff/build/\xfe"), false));
    assert!(rules.is_ignored(&at(b"\xff.swp"), false));
    assert!(!rules.is_ignored(&at(b"\xff\xfe"), false));
    assert!(!rules.is_ignored(&at(b"tmp\xff"), true));
}

#[test]
fn bad_lines_are_named_and_the_others_count() {
    let (rules, warnings) = IgnoreRules::parse(b"\xef\xbb\xbf*.o\r\n\xff\xfe\n[z-a]\nlast\r\n");
    let lines: Vec<_> = warnings.iter().map(|warning| warning.line).collect();
    assert_eq!(lines, [2, 3]);
    assert_eq!(
        warnings[0].to_string(),
        "line 2 of the ignore rules does not count: it is not UTF-8"
    );
    assert_rules(&rules, &["main.o", "last"], &["main.c"]);
}

#[test]
fn endless_rules_are_cut() {
    let (rules, warnings) = IgnoreRules::parse("rule\n".repeat(RULES_MAX + 5).as_bytes());
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].line, RULES_MAX + 1);
    assert!(rules.is_ignored(&at("rule"), false));
    let long = ["#".repeat(RULES_LENGTH_MAX), "\nrule\n".to_owned()].concat();
    let (rules, warnings) = IgnoreRules::parse(long.as_bytes());
    assert_eq!(warnings.len(), 1);
    assert!(!rules.is_ignored(&at("rule"), false));
}

#[test]
fn hostile_patterns_end_in_a_warning_or_a_rule() {
    let texts = ["{".repeat(5000), "*".repeat(5000), "{a,".repeat(2000), "[".repeat(5000)];
    for text in texts {
        let (rules, _) = IgnoreRules::parse(text.as_bytes());
        rules.is_ignored(&at("a/b/c"), false);
    }
}
