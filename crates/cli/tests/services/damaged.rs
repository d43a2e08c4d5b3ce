//! Stores that are emptied, set back to yesterday, read-only or full, one after the other, under a workspace that goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::services::SMALL_ACCOUNT;

use crate::stage::{Kept, Stage, THREE_OF_FIVE, TWO_COPIES, noise_of};

/// Runs a program of the system that must do its work.
fn system(words: &[&str], path: &Path) {
    let status = Command::new(words[0]).args(&words[1..]).arg(path).status().unwrap();
    assert!(status.success(), "{words:?} {}", path.display());
}

fn copy(from: &Path, to: &Path) {
    system(&["cp", "-a", from.to_str().unwrap()], to);
}

/// Both devices write something new and get each other's.
fn work(stage: &Stage, number: u8) {
    stage.one.write(&format!("one/{number}"), noise_of(number, 1 << 20));
    stage.other.write(&format!("other/{number}"), noise_of(number + 100, 300_000));
    stage.settle();
}

/// The store at a server is that of the day before, and has forgotten what came since.
fn set_back_to_yesterday(stage: &mut Stage, server: &str) {
    let (data, yesterday) = (stage.data(server), stage.data(server).with_extension("yesterday"));
    copy(&data, &yesterday);
    work(stage, 10);
    stage.running.kill(server).unwrap();
    system(&["rm", "-r"], &data);
    copy(&yesterday, &data);
    stage.running.revive(server).unwrap();
    work(stage, 11);
    stage.assert_repaired();
}

/// Nothing can be written to the store at a server for a while.
fn read_only(stage: &Stage, server: &str) {
    let data = stage.data(server);
    system(&["chmod", "-R", "a-w"], &data);
    work(stage, 20);
    system(&["chmod", "-R", "u+w"], &data);
    stage.assert_repaired();
}

/// All data have gone from the store at a server, and nobody was told.
fn emptied_of_data(stage: &Stage, server: &str) {
    let find =
        ["-type", "d", "(", "-name", "packs", "-o", "-name", "blocks", "-o", "-name", "pages", ")"];
    let find = || {
        let output = Command::new("find").arg(stage.data(server)).args(find).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // Of two copies in five stores this one may have had none until now: where they go depends on the ids of the workspace and its packs.
    let mut found = find();
    for number in 50..70 {
        if !found.is_empty() {
            break;
        }
        work(stage, number);
        found = find();
    }
    assert!(!found.is_empty(), "there was nothing to take away");
    for folder in found.lines() {
        system(&["rm", "-r"], Path::new(folder));
    }
    work(stage, 30);
    let third = stage.device("third");
    stage.clone_into(&third, server);
    assert_eq!(third.tree(), stage.one.tree());
    stage.assert_repaired();
}

/// The store at a server has nothing at all any more; a device that watches fills it again, and nobody does anything.
fn emptied_whole(stage: &Stage, server: &str) {
    for entry in fs::read_dir(stage.data(server)).unwrap() {
        system(&["rm", "-r"], &entry.unwrap().path());
    }
    let found = stage.one.run(&["check", "--json"]).json();
    assert_eq!(found["unseen_stores"].as_array().map(Vec::len), Some(1), "{found}");
    stage.watch_until("the store has everything again", || {
        let found = stage.one.run(&["check", "--json"]).json();
        found["missing"] == 0 && found["unseen_stores"].as_array().is_some_and(Vec::is_empty)
    });
    work(stage, 40);
    stage.assert_repaired();
    let fourth = stage.device("fourth");
    stage.clone_into(&fourth, server);
    assert_eq!(fourth.tree(), stage.one.tree());
}

fn one_bad_day_after_the_other(name: &str, kept: &Kept) {
    let mut stage = Stage::set(name, kept);
    set_back_to_yesterday(&mut stage, "vsftpd");
    read_only(&stage, "apache");
    emptied_of_data(&stage, "samba");
    emptied_whole(&stage, "openssh");
}

#[test]
fn stores_with_bad_days_keep_two_copies() {
    one_bad_day_after_the_other("bad-days-copies", &TWO_COPIES);
}

#[test]
fn stores_with_bad_days_keep_three_of_five_blocks() {
    one_bad_day_after_the_other("bad-days-blocks", &THREE_OF_FIVE);
}

/// The mailbox is full in the middle of a sync. The rest goes on, and says what is missing; nothing is lost.
#[test]
fn store_that_is_full_does_not_block_the_others() {
    let stage =
        Stage::set_with("full", &THREE_OF_FIVE, BTreeMap::from([("dovecot", SMALL_ACCOUNT)]));
    for number in 0..18 {
        stage.one.write(&format!("large/{number}"), noise_of(number, 4 << 20));
    }
    stage.settle();
    let third = stage.device("third");
    stage.clone_into(&third, "openssh");
    assert_eq!(third.tree(), stage.one.tree());
    let found = stage.one.run(&["check", "--repair", "--json"]);
    let found = found.ends_with(3).json();
    assert!(found["missing"].as_u64() > Some(0) && found["lost"] == 0, "{found}");
}
