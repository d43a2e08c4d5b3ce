//! Backups of a server, and what devices do after an older one was put in place.

use std::fs;

use crate::support::{Device, Pair, Server, fill};

fn words<'a>(pair: &'a Pair, rest: &[&'a str]) -> Vec<String> {
    let data = pair.room.path().join("server");
    let mut words = vec!["admin".to_owned()];
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words.extend(["--data".to_owned(), data.display().to_string()]);
    words
}

fn run(operator: &Device, words: &[String]) -> crate::support::Run {
    operator.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn after_a_restore_the_devices_bring_back_what_the_server_has_lost() {
    let mut pair = Pair::synced(true, fill);
    let operator = Device::new(pair.room.path(), "operator");
    let target = format!("file:{}", pair.room.path().join("backup").display());
    let made = run(&operator, &words(&pair, &["backup", &target, "--json"])).ok().json();
    assert_eq!(
        (&made["schema"], &made["damage"]),
        (&"syncline.admin-backup/1".into(), &serde_json::json!([]))
    );
    assert!(made["copied_objects"].as_u64().unwrap() > 0, "{made}");

    // What happens after the backup: edits, a large new file, a deletion, on both devices.
    pair.one.write("a.txt", "after the backup\n");
    pair.one.write("new/large.bin", crate::support::noise(2 << 20));
    pair.one.sync().ok();
    pair.other.sync().ok();
    pair.other.write("deep/er/b.txt", "by the other\n");
    fs::remove_file(pair.other.folder.join("zero")).unwrap();
    pair.other.sync().ok();
    // One device has not heard of the last changes, and has one of its own.
    pair.one.write("of one", "not sent yet\n");
    let other = pair.other.tree();

    let mut server = pair.server.take().unwrap();
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    server.stop();
    let old = pair.room.path().join("server");
    fs::rename(&old, pair.room.path().join("burnt down")).unwrap();
    let restored = run(&operator, &words(&pair, &["restore", &target, "--json"])).ok().json();
    assert_eq!(restored["backup"], made["backup"]);
    let looked = run(&operator, &words(&pair, &["verify", "--read-data", "--json"])).ok().json();
    assert!(looked["read_bytes"].as_u64().unwrap() > 0, "{looked}");
    pair.server = Some(Server::start_at(&operator, old, &address));

    let said = pair.other.run(&["sync"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("older copy") && said.stderr.contains("sent again"), "{said:?}");
    // Everything is as it was, but for what was deleted since: nobody can tell that from a file that is new on the server.
    let assert_kept = |tree: &std::collections::BTreeMap<std::path::PathBuf, String>| {
        let mut kept = tree.clone();
        assert!(kept.remove(std::path::Path::new("zero")).is_some());
        // A device that was behind has no base any more for what another one brings back: its older file stays as a copy.
        for path in ["of one", "deep/er/b (conflict laptop).txt"] {
            kept.remove(std::path::Path::new(path));
        }
        assert_eq!(kept, other);
    };
    assert_kept(&pair.other.tree());
    pair.settle();
    pair.assert_equal();
    let after = pair.one.tree();
    assert_kept(&after);
    assert_eq!(pair.one.read("deep/er/b.txt"), b"by the other\n");
    assert_eq!(pair.other.read("of one"), b"not sent yet\n");
    // The server has all of it: a device that comes anew gets the same.
    let third = Device::new(pair.room.path(), "third");
    pair.server.as_ref().unwrap().login(&third, "third");
    // 5: the conflict waits for a decision.
    third.run(&["clone", "Notes", third.folder.to_str().unwrap()]).ends_with(5);
    assert_eq!(third.tree(), after);
    run(&operator, &words(&pair, &["verify", "--read-data"])).ok();
}

#[test]
fn damage_ends_with_8_and_is_listed_and_other_places_are_refused() {
    let pair = Pair::synced(true, fill);
    let operator = Device::new(pair.room.path(), "operator");
    let target = format!("file:{}", pair.room.path().join("backup").display());
    run(&operator, &words(&pair, &["backup", &target])).ok();
    let backups = run(&operator, &words(&pair, &["restore", &target, "--dry-run", "--json"]));
    let name = backups.ok().json()["backups"][0].as_str().unwrap().to_owned();
    run(&operator, &words(&pair, &["verify", "--backup", &target, "--at", &name])).ok();
    let refused = run(&operator, &words(&pair, &["restore", &target])).ends_with(11);
    assert!(refused.stderr.contains("E0205"), "{}", refused.stderr);
    let data = pair.room.path().join("server");
    let url = format!("sqlite:{}", data.display());
    let elsewhere = format!("sqlite:{}", pair.room.path().join("elsewhere").display());
    operator.run(&["admin", "migrate", "--from", &url, "--to", &elsewhere]).ends_with(11);

    let packs = data.join("store/workspaces");
    let pack = walk(&packs).into_iter().max_by_key(|path| fs::metadata(path).unwrap().len());
    fs::remove_file(pack.unwrap()).unwrap();
    let found = run(&operator, &words(&pair, &["verify", "--json"])).ends_with(8).json();
    assert!(found["damage"][0]["what"].as_str().unwrap().starts_with("packs/"), "{found}");
    let found = run(&operator, &words(&pair, &["verify"])).ends_with(8);
    assert!(found.stdout.contains("not in the store"), "{found:?}");
    // The backup has it still, and goes on to have it.
    run(&operator, &words(&pair, &["backup", &target])).ok();
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
