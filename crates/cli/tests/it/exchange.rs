//! The everyday: two devices, both coordinators.

use std::fs;

use content::documents::photograph;

use crate::support::{BOTH, Pair, document, fill, words};

#[test]
fn trees_are_equal_after_edits_on_both_sides_and_a_second_sync_does_nothing() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        pair.assert_equal();
        let (one, other) = (&pair.one, &pair.other);
        one.write("a.txt", "edited on one\n");
        one.write("new/file", "new\n");
        fs::remove_file(one.folder.join("zero")).unwrap();
        fs::rename(one.folder.join("deep"), one.folder.join("moved")).unwrap();
        other.write("deep/er/b.txt", "edited on the other\n");
        fs::rename(other.folder.join("run.sh"), other.folder.join("go.sh")).unwrap();
        fs::remove_file(other.folder.join("dangling")).unwrap();
        pair.settle();
        pair.assert_equal();
        assert_eq!(one.read("moved/er/b.txt"), b"edited on the other\n");
        assert_eq!(other.read("a.txt"), b"edited on one\n");
        assert!(
            !other.has("zero") && !one.has("dangling") && one.has("go.sh") && other.has("new/file")
        );
        for device in [one, other] {
            let summary = device.sync().ok().json();
            assert_eq!(
                (summary["sent"].as_u64(), summary["received"].as_u64()),
                (Some(0), Some(0))
            );
            // What has changed a moment ago is read once more, in case it changed twice in one tick of its clock.
            let reads_nothing = (0..100).any(|_| device.sync().ok().json()["read_bytes"] == 0);
            assert!(reads_nothing, "everything is read again and again");
        }
    }
}

#[test]
fn an_edited_document_costs_what_was_edited_whoever_edits_it() {
    for is_served in BOTH {
        let mut text = words(40_000);
        let pair = Pair::synced(is_served, |device| device.write("a.pdf", document(&text)));
        let whole = document(&text).len() as u64;
        for (edit, [from, to]) in
            [[&pair.one, &pair.other], [&pair.other, &pair.one], [&pair.one, &pair.other]]
                .into_iter()
                .enumerate()
        {
            text.insert_str(1000 * (edit + 1), "edited ");
            from.write("a.pdf", document(&text));
            let sent = from.sync().ok().json();
            let bytes = sent["sent_bytes"].as_u64().unwrap();
            assert!(bytes < 4000 && bytes * 30 < whole, "edit {edit} of {whole} bytes: {sent}");
            to.sync().ok();
            assert!(to.read("a.pdf") == document(&text), "edit {edit}");
        }
        let found = pair.one.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!((&found["lost"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn a_copy_that_is_edited_before_it_is_synced_costs_what_was_edited_whoever_makes_it() {
    for is_served in BOTH {
        let text = words(40_000);
        let pair = Pair::synced(is_served, |device| {
            device.write("report.pdf", document(&text));
            device.write("notes/long.txt", &text);
            device.write("other.txt", words(10_000).to_uppercase());
        });
        let mut edited = text.clone();
        for (number, [from, to]) in
            [[&pair.one, &pair.other], [&pair.other, &pair.one]].into_iter().enumerate()
        {
            edited.insert_str(9000 * (number + 1), "edited ");
            // Under other names, in other folders, with what is new already in it.
            let (report, notes) = (format!("old/report {number}.pdf"), format!("{number}.txt"));
            from.write(&report, document(&edited));
            from.write(&notes, &edited);
            let sent = from.sync().ok().json();
            let bytes = sent["sent_bytes"].as_u64().unwrap();
            assert!(bytes < 8000 && bytes * 30 < text.len() as u64, "copy {number}: {sent}");
            to.sync().ok();
            assert!(to.read(&report) == document(&edited), "copy {number}");
            assert!(to.read(&notes) == edited.as_bytes(), "copy {number}");
        }
        let found = pair.one.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!((&found["lost"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn photographs_cost_a_fifth_less_and_a_new_title_next_to_nothing() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, |device| device.write("note", "here"));
        let (one, other) = (&pair.one, &pair.other);
        // So many do not travel inside the commit.
        let titles: Vec<String> = (0..12).map(|number| format!("walk {number}")).collect();
        for title in &titles {
            one.write(&format!("{title}.jpg"), photograph(title.as_bytes()));
        }
        let sent = one.sync().ok().json();
        let whole = photograph(b"walk 10").len() as u64 * titles.len() as u64;
        assert!(sent["sent_bytes"].as_u64().unwrap() * 5 < whole * 4, "{sent} of {whole}");
        other.sync().ok();
        for title in &titles {
            let found = other.read(&format!("{title}.jpg"));
            assert!(found == photograph(title.as_bytes()), "{title}");
        }
        other.write("walk 7.jpg", photograph(b"a walk in the rain"));
        let sent = other.sync().ok().json();
        assert!(sent["sent_bytes"].as_u64().unwrap() < 1500, "{sent}");
        one.sync().ok();
        pair.assert_equal();
        let found = one.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!((&found["lost"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn a_renamed_file_is_not_sent_again() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        fs::rename(pair.one.folder.join("big.bin"), pair.one.folder.join("large.bin")).unwrap();
        let sent = pair.one.sync().ok().json();
        assert!(sent["sent_bytes"].as_u64().unwrap() < 2000, "{sent}");
        let received = pair.other.sync().ok().json();
        assert!(received["received_bytes"].as_u64().unwrap() < 2000, "{received}");
        pair.assert_equal();
    }
}

#[test]
fn a_clone_into_a_folder_with_files_merges_and_removes_nothing() {
    for is_served in BOTH {
        let pair = Pair::new(is_served);
        fill(&pair.one);
        pair.init();
        pair.one.sync().ok();
        pair.other.write("only here", "kept\n");
        pair.other.write("a.txt", "another first\n");
        let run = pair.clone_other();
        assert_eq!(run.code, 5, "{run:?}");
        pair.settle();
        pair.assert_equal();
        assert_eq!(pair.one.read("only here"), b"kept\n");
        let contents: Vec<_> = pair
            .one
            .tree()
            .keys()
            .filter(|path| path.to_string_lossy().contains("conflict"))
            .cloned()
            .collect();
        assert_eq!(contents.len(), 1, "{contents:?}");
    }
}

#[test]
fn the_steps_add_up_to_a_sync() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        pair.one.write("a.txt", "step by step\n");
        let recorded = pair.one.run(&["checkin", "--json"]).ok().json();
        assert_eq!(recorded["sent"], 1);
        assert_eq!(recorded["sent_bytes"], 0, "a checkin sends nothing");
        let status = pair.one.run(&["status", "--json"]).ok().json();
        assert_eq!(status["waiting_to_be_sent"], 1);
        pair.one.run(&["push"]).ok();
        pair.other.run(&["fetch"]).ok();
        assert_eq!(pair.other.read("a.txt"), b"first\n", "a fetch changes no file");
        pair.other.run(&["merge"]).ok();
        assert_eq!(pair.other.read("a.txt"), b"step by step\n");
        pair.other.write("a.txt", "in two halves\n");
        pair.other.run(&["up"]).ok();
        pair.one.run(&["down"]).ok();
        pair.assert_equal();
    }
}

#[test]
fn a_checkin_needs_no_server() {
    let mut pair = Pair::synced(true, fill);
    pair.server.as_mut().unwrap().stop();
    pair.one.write("a.txt", "on the train\n");
    pair.one.write("film.bin", crate::support::noise(500_000));
    pair.one.run(&["checkin"]).ok();
    pair.one.run(&["status"]).ok();
    pair.one.run(&["push"]).ends_with(6);
}

#[test]
fn status_says_what_is_new_changed_and_deleted() {
    let pair = Pair::synced(false, fill);
    pair.one.write("new", "n");
    pair.one.write("a.txt", "changed\n");
    fs::remove_file(pair.one.folder.join("zero")).unwrap();
    let status = pair.one.run(&["status", "--json"]).ok().json();
    assert_eq!(status["new"], serde_json::json!(["new"]));
    assert_eq!(status["changed"], serde_json::json!(["a.txt"]));
    assert_eq!(status["deleted"], serde_json::json!(["zero"]));
    assert_eq!(
        pair.one.run(&["sync", "--dry-run", "--json"]).ok().json()["new"],
        serde_json::json!(["new"])
    );
}

#[test]
fn ignored_names_stay_where_they_are() {
    let pair = Pair::synced(false, |device| {
        device.write(".synclineignore", "*.log\nbuild/\n");
        device.write("x.log", "no");
        device.write("build/out", "no");
        device.write("kept.txt", "yes");
    });
    assert!(pair.other.has("kept.txt") && pair.other.has(".synclineignore"));
    assert!(!pair.other.has("x.log") && !pair.other.has("build"));
}

#[test]
fn a_synced_folder_may_be_moved() {
    let mut pair = Pair::synced(false, fill);
    let moved = pair.room.path().canonicalize().unwrap().join("elsewhere");
    fs::rename(&pair.one.folder, &moved).unwrap();
    pair.one.folder = moved;
    pair.one.write("a.txt", "from elsewhere\n");
    pair.settle();
    pair.assert_equal();
}

#[test]
fn names_that_cannot_be_synced_are_listed_and_the_rest_goes() {
    use std::os::unix::net::UnixListener;
    let pair = Pair::synced(false, fill);
    let _socket = UnixListener::bind(pair.one.folder.join("socket")).unwrap();
    pair.one.write("fine", "fine");
    let summary = pair.one.sync().ends_with(3).json();
    assert_eq!(summary["problems"][0]["path"], "socket");
    assert_eq!(summary["problems"][0]["kind"], "not_a_file");
    pair.other.sync().ok();
    assert!(pair.other.has("fine") && !pair.other.has("socket"));
}
