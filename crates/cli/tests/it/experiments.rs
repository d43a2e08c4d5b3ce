//! `syncline lab`, `syncline trace` and `syncline bench`: somebody measures the papers again, plays traces, and benchmarks.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Device, Pair, finish, noise, terminate};

#[test]
fn the_lab_lists_what_it_measures_and_measures_a_folder_of_versions() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let list = device.run(&["lab", "list"]).ok().stdout;
    assert!(list.contains("syncany-chunking") && list.contains("tables 6.2 to 6.8"), "{list}");
    assert!(list.contains("in the source tree: cargo xtask bench metasync"), "{list}");

    let text = "a line of letters\n".repeat(2000);
    for version in ["1.9", "1.10"] {
        device.write(&format!("releases/{version}/a.txt"), format!("{text}{version}\n"));
    }
    let words = [
        "lab",
        "run",
        "syncany-chunking",
        "--dataset",
        "D=releases",
        "--only",
        "-0/TTTD-8-Adler32",
    ];
    let run = device.run(&[&words[..], &["--faithful", "--json"]].concat()).ok();
    let summary = run.json();
    assert_eq!(summary["type"], "summary");
    // The dataset, ours, and six configurations in two variants.
    assert_eq!(run.stdout.lines().count(), 1 + 1 + 12 + 1, "{}", run.stdout);
    let page = String::from_utf8(device.read(summary["page"].as_str().unwrap())).unwrap();
    let ours = "<td><strong>ours</strong></td>";
    assert!(page.contains("dataset D: 2 versions") && page.contains(ours), "{page}");
    let report = device.run(&["lab", "report"]).ok().stdout;
    assert!(report.contains("report.html: syncany-chunking\n"), "{report}");
    assert!(report.contains(", syncany-budget"), "{report}");
    let report = String::from_utf8(device.read("lab-results/report.html")).unwrap();
    assert!(report.contains(ours) && report.contains("<svg"), "{report}");
    assert!(device.has("lab-results/syncany-chunking/syncany-chunking.csv"));
    assert!(device.has("lab-results/syncany-chunking/syncany-D-size-compression.svg"));
}

#[test]
fn what_the_lab_cannot_measure_is_refused_and_says_what_would_be_right() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    device.write("one/file.txt", "no version");
    for (words, code, wanted) in [
        (&["syncany-chunkin"][..], 2, "syncline lab run syncany-chunking"),
        (&[], 2, "NAME"),
        (&["stacksync-figure-7"], 2, "cargo xtask bench server --scaled"),
        (&["syncany-budget", "stacksync-figure-7", "--full"], 2, "has options of its own"),
        (&["benchcloud-client", "--only", "4.11"], 2, "as in 'figure 4.8'"),
        (&["syncany-chunking", "--dataset", "one"], 2, "a name and a folder"),
        (&["syncany-chunking", "--dataset", "E"], 2, "A, B, C and D can also be made"),
        (&["syncany-chunking", "--dataset", "D=one"], 2, "at least two versions"),
        (&["syncany-chunking", "--dataset", "D=none"], 1, "none"),
        (&["syncany-chunking", "--only", "TTTD-5"], 2, "TTTD-4-Adler32"),
    ] {
        let run = device.run(&[&["lab", "run"], words].concat()).ends_with(code);
        assert!(run.stderr.contains(wanted), "{words:?}: {run:?}");
    }
}

#[test]
fn versions_come_into_a_workspace_and_what_cleanups_leave_is_counted() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let same = noise(900_000);
    for version in 1..=3_u8 {
        device.write(&format!("d/{version}/same.bin"), &same);
        let other = noise(600_000).into_iter().map(|byte| byte ^ version);
        device.write(&format!("d/{version}/other.bin"), other.collect::<Vec<_>>());
    }
    let run = device.run(&["lab", "run", "syncany-repacking", "--dataset", "D=d"]).ok();
    assert!(run.stdout.contains("dataset D: after 3 versions"), "{run:?}");
    let csv = device.read("lab-results/syncany-repacking/syncany-repacking.csv");
    let csv = String::from_utf8(csv).unwrap();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap();
        // Bytes by chance take their length; of versions that are gone little is left.
        assert_eq!(number(2), 1_500_000);
        assert!((1_500_000..1_600_000).contains(&number(3)), "{csv}");
        assert!(number(4) < 100_000, "{csv}");
    }
    assert_eq!(csv.lines().count(), 1 + 3, "{csv}");
}

/// What the source tree does is too long for a test: here a program is called `cargo` that only says what it was asked, and draws.
#[cfg(unix)]
#[test]
fn in_the_source_tree_the_lab_runs_what_is_measured_there_and_makes_pages_of_it() {
    use std::os::unix::fs::PermissionsExt;

    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    for part in ["Cargo.toml", "xtask/Cargo.toml", "experiments/README.md"] {
        device.write(part, "");
    }
    let script = "#!/bin/sh\necho \"$@\" >> asked\nwhile [ \"$1\" != --out ]; do shift; done\nmkdir -p \"$2\"\n\
        echo '<svg>drawn here</svg>' > \"$2/metasync-8.svg\"\nexit $(cat fails 2>&- || echo 0)\n";
    device.write("programs/cargo", script);
    let program = device.folder.join("programs/cargo");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    device.write("below/here", "");
    let run = |names: &[&str]| {
        let mut command = device.command(&[&["-C", "below", "lab", "run"], names].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", program.parent().unwrap().display()));
        finish(command)
    };
    // Both are measured by one command.
    let done = run(&["metasync-figure-9", "metasync-figure-8"]).ok();
    let pages: Vec<&str> = done.stdout.lines().collect();
    let page = |name: &str| format!("{name}: lab-results/{name}/{name}.html");
    assert_eq!(pages, [page("metasync-figure-8"), page("metasync-figure-9")]);
    let asked = String::from_utf8(device.read("asked")).unwrap();
    let words = "xtask bench metasync --only agreement --seeds 31 --out ";
    assert!(asked.starts_with(words) && asked.lines().count() == 1, "{asked}");
    let has = |name: &str, wanted: &str| {
        let html = device.read(&format!("below/lab-results/{name}/{name}.html"));
        String::from_utf8(html).unwrap().contains(wanted)
    };
    assert!(has("metasync-figure-8", "drawn here") && !has("metasync-figure-9", "drawn here"));
    let report = device.run(&["-C", "below", "lab", "report"]).ok().stdout;
    assert!(report.contains("report.html: metasync-figure-8, metasync-figure-9\n"), "{report}");

    device.write("fails", "3");
    let failed = run(&["metasync-figure-8"]).ends_with(1);
    assert!(
        failed.stderr.contains("exit status: 3") && failed.stderr.contains("E0218"),
        "{failed:?}"
    );
    let elsewhere = Device::new(room.path(), "elsewhere");
    let refused = elsewhere.run(&["lab", "run", "metasync-figure-8"]).ends_with(2);
    assert!(refused.stderr.contains("needs the source tree"), "{refused:?}");
}

#[test]
fn two_devices_and_a_server_are_measured_as_benchcloud_measures_a_client() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let run =
        device.run(&["lab", "run", "benchcloud-client", "--only", "table 4.7", "--json"]).ok();
    assert_eq!(run.json()["type"], "summary");
    let csv = String::from_utf8(device.read("lab-results/benchcloud-client/benchcloud-client.csv"));
    let csv = csv.unwrap();
    let cells: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    let (up, lost) = (cells[4].parse::<u64>().unwrap(), cells[6]);
    // Three equal files of 20 MB, which no compression makes smaller, go up once; where one is seen while it is still being written, what was there
    // then goes up besides.
    assert!((20 << 20..50 << 20).contains(&up) && lost == "0", "{csv}");
    let run = device.run(&["lab", "run", "benchcloud-readiness", "--only", "1 KB"]).ok();
    assert!(run.stdout.contains("benchcloud-readiness.html"), "{run:?}");
    let left = std::fs::read_dir(device.folder.join("lab-results/benchcloud-client/data")).unwrap();
    assert_eq!(left.count(), 0, "what was made to be measured is gone");
    let report = device.run(&["lab", "report"]).ok().stdout;
    assert!(report.contains("report.html: benchcloud-readiness, benchcloud-client\n"), "{report}");
}

#[test]
fn results_are_listed_drawn_again_and_compared() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    std::fs::create_dir(device.folder.join("files")).unwrap();
    assert!(device.run(&["bench", "ls"]).ok().stdout.contains("no result in bench-results"));
    let mut folders = Vec::new();
    for times in [3, 6] {
        let file =
            format!("operation = \"upload\"\ntimes = {times}\n[target]\nfolder = \"files\"\n");
        device.write("one.toml", file);
        let page = device.run(&["bench", "run", "one.toml", "--json"]).ok().json()["page"].clone();
        folders.push(page.as_str().unwrap().strip_suffix("/benchmark.html").unwrap().to_owned());
    }
    let listed = device.run(&["bench", "ls"]).ok().stdout;
    assert!(folders.iter().all(|folder| listed.contains(folder.as_str())), "{listed}");
    assert!(listed.contains("3 done, 0 failed, 0 lost"), "{listed}");

    let drawn = device.run(&["bench", "plot", &folders[0], "--out", "again"]).ok().stdout;
    assert_eq!(drawn, "again/benchmark-shares.svg\nagain/benchmark-over-time.svg\n");
    assert!(String::from_utf8_lossy(&device.read("again/benchmark-shares.svg")).contains("<svg"));

    let words = ["bench", "compare", &folders[0], &folders[1]];
    let compared = device.run(&[&words[..], &["--out", "both", "--json"]].concat()).ok().json();
    let rows = compared["rows"].as_array().unwrap();
    let done = rows.iter().find(|row| row["what"] == "upload: done").unwrap();
    assert_eq!(
        (&done["one"], &done["other"], &done["ratio"]),
        (&3.0.into(), &6.0.into(), &2.0.into())
    );
    assert_eq!(compared["differences"], serde_json::json!(["asked: 3 and 6"]));
    assert!(device.has("both/comparison.html"));
    let shown = device.run(&words).ok();
    assert!(shown.stdout.contains("upload: p99, ms") && shown.stderr.contains("asked: 3 and 6"));
    let refused = device.run(&["bench", "compare", "files", &folders[1]]).ends_with(2);
    assert!(refused.stderr.contains("no result of a benchmark"), "{refused:?}");
}

#[test]
fn bench_probe_finds_out_what_a_store_does_and_leaves_nothing_there() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let words = ["bench", "probe", "file:store", "--name", "a folder", "--quick"];
    let found = device.run(&[&words[..], &["--json"]].concat()).ok().json();
    assert_eq!((&found["name"], &found["kind"]), (&"a folder".into(), &"store".into()));
    let answers = found["answers"].as_array().unwrap();
    let loss = answers.iter().find(|answer| answer["feature"] == "Loss under load").unwrap();
    assert_eq!(loss["answer"], "0 of 100");
    let makes = "Makes an object only where none is";
    assert!(answers.iter().any(|it| it["feature"] == makes && it["answer"] == "yes"), "{found}");
    assert_eq!(found["warnings"], serde_json::json!([]));
    assert!(!device.has("store/probe"), "all that it wrote is removed");

    let shown = device.run(&words).ok();
    assert!(shown.stdout.contains("Loss under load: 0 of 100\n  100 objects of 1 KiB in "));
    let listed = device.run(&["bench", "ls"]).ok().stdout;
    assert_eq!(listed.matches("a probe of a folder").count(), 2, "{listed}");
    let results: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    let tables = device.run(&[&["bench", "tables"], &results[..]].concat()).ok().stdout;
    assert_eq!(tables, "bench-results/tables/probes.html\n");
    let page = String::from_utf8(device.read("bench-results/tables/probes.md")).unwrap();
    assert!(page.starts_with("# What stores do"), "{page}");

    for (words, text) in [
        (&["file:store", "--port", "1"][..], "--port says something about a program"),
        (&["nowhere", "--name", "x", "--port", "1"], "there is no folder nowhere"),
        (&["bench-results", "--port", "1"], "nothing says what the program is called"),
        (&["bench-results", "--name", "x"], "to which ports of a server the program talks"),
        (&["gopher:x"], "does not name a store"),
        (&["bench-results", "--credentials", "x"], "--credentials opens a store"),
    ] {
        let refused = device.run(&[&["bench", "probe"], words].concat()).ends_with(2);
        assert!(refused.stderr.contains(text), "{words:?}: {refused:?}");
    }
}

#[test]
fn a_trace_is_played_into_two_devices_and_both_end_as_it_says() {
    let pair = Pair::synced(true, |_| {});
    let words = ["trace", "gen", "stacksync", "--out", "../day.trace", "--tree", "6MB"];
    let more = ["--changes", "12", "--clients", "2", "--interval-ms", "10"];
    pair.one.run(&[&words[..], &more].concat()).ok();
    let mut watches: Vec<_> = [&pair.one, &pair.other]
        .map(|device| device.command(&["watch"]).stdout(Stdio::null()).spawn().unwrap())
        .into();
    let folders = [&pair.one, &pair.other].map(|device| device.folder.to_str().unwrap().to_owned());
    let words =
        ["trace", "exec", "../day.trace", &folders[0], &folders[1], "--speed", "10", "--json"];
    let played = pair.one.run(&words);
    for watch in &mut watches {
        terminate(watch, Signal::TERM);
    }
    let summary = played.ok().json();
    assert_eq!((summary["type"].as_str(), summary["steps"].as_u64()), (Some("summary"), Some(12)));
    assert!(summary["settled_seconds"].is_f64(), "{summary}");
    assert_eq!(pair.one.tree(), pair.other.tree());
}

#[test]
fn links_to_the_files_of_a_workspace_are_measured_and_none_stays() {
    let pair = Pair::synced(true, |_| {});
    pair.one.write("letters/one.txt", "a letter");
    pair.one.write("letters/other.txt", "another letter");
    pair.one.run(&["sync"]).ok();
    let file = pair.one.folder.with_file_name("share.toml");
    let text = "operation = \"share\"\ntimes = 5\nthreads = 2\n[target]\nworkspace = \".\"\ndirectory = \"letters\"\n";
    std::fs::write(&file, text).unwrap();
    let words = ["bench", "run", "../share.toml", "--out", "../out", "--json"];
    let summary = pair.one.run(&words).ok().json();
    assert_eq!((&summary["asked"], &summary["failed"]), (&10.into(), &0.into()), "{summary}");
    assert_eq!(summary["operations"][0]["operation"], "share");
    let links = pair.one.run(&["share", "ls", "--json"]).ok();
    assert!(!links.stdout.contains("letters"), "{links:?}");

    // What the server has not yet cannot be shared, also not by a folder in the workspace.
    pair.one.write("letters/new.txt", "not sent yet");
    std::fs::write(&file, text.replace("directory", "# ")).unwrap();
    let run = pair.one.run(&[&words[..], &["--target", "letters"]].concat()).ends_with(1);
    assert!(run.stdout.contains("5 operations failed"), "{run:?}");
    let run = pair.one.run(&[&words[..], &["--target", "nowhere"]].concat()).ends_with(2);
    assert!(run.stdout.contains("target.workspace: there is no folder nowhere"), "{run:?}");
}

#[test]
fn every_preset_makes_a_trace_that_is_played() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    device.write("releases/1.0/a.txt", "a line of letters\n".repeat(50));
    device.write("releases/1.1/a.txt", "a line of letters\n".repeat(50) + "and one more\n");
    for (words, changes, files) in [
        (&["stacksync", "--tree", "1MB", "--changes", "3", "--reading", "benchbox"][..], 3, 1),
        (&["webr2sync", "--files", "2", "--rounds", "2"], 4, 2),
        (&["metasync", "--folder", "paper"], 0, 70),
        (&["metasync", "--tree", "110KB"], 0, 10),
        (&["iot", "--sensors", "3", "--files", "2", "--start", "spread"], 6, 0),
        (&["homes", "--users", "2", "--tree", "0", "--weeks", "2", "--changes", "5"], 5, 1),
        (&["ubuntuone", "--users", "2", "--tree", "0", "--changes", "5"], 5, 0),
        (&["thesis-d", "--versions", "1"], 0, 200),
        (&["versions", "releases"], 1, 1),
    ] {
        let words = [&["trace", "gen"], words, &["--out", "it.trace", "--json"]].concat();
        let made = device.run(&words).ok().json();
        assert_eq!((&made["changes"], &made["tree_files"]), (&changes.into(), &files.into()));
        std::fs::create_dir(device.folder.join("played")).unwrap();
        let words = ["trace", "exec", "it.trace", "played", "--unhindered", "--json"];
        let summary = device.run(&words).ok().json();
        assert_eq!(summary["steps"], changes, "{summary}");
        std::fs::remove_dir_all(device.folder.join("played")).unwrap();
        std::fs::remove_file(device.folder.join("it.trace")).unwrap();
    }
    for (words, wanted) in [
        (&["iot", "--reading", "paper"][..], "unexpected argument"),
        (&["stacksync", "--tree", "much"], "'much' is no size"),
        (&["versions", "releases/1.0"], "at least two versions"),
        (&["thesis-a", "--versions", "0"], "invalid value '0'"),
        (&["thesis-e"], "unrecognized subcommand"),
        (&["day"], "unrecognized subcommand"),
    ] {
        let words = [&["trace", "gen"], words, &["--out", "it.trace"]].concat();
        let run = device.run(&words).ends_with(2);
        assert!(run.stderr.contains(wanted) && !device.has("it.trace"), "{words:?}: {run:?}");
    }
}

#[test]
fn what_happens_to_a_folder_is_recorded_until_somebody_ends_it_and_played_again() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    device.write("folder/a/letter.txt", "a line of letters\n".repeat(100));
    let words = ["trace", "record", "folder", "--out", "day.trace", "--every-ms", "10", "--json"];
    let mut recording = device.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let wait_for = |path: &str| {
        let has_it = || {
            device.has("day.trace")
                && String::from_utf8_lossy(&device.read("day.trace")).contains(path)
        };
        let is_there = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            has_it()
        });
        assert!(is_there, "{path} is not in the trace after 30 s");
    };
    wait_for("letter.txt");
    device.write("folder/b.bin", noise(5000));
    wait_for("b.bin");
    assert_eq!(terminate(&mut recording, Signal::INT), Some(0));
    device.write("again/.keep", "");
    let played = device.run(&["trace", "exec", "day.trace", "again", "--unhindered", "--json"]);
    let summary = played.ok().json();
    assert_eq!(
        (summary["initial_steps"].as_u64(), summary["differences"].as_array().map(Vec::len)),
        (Some(2), Some(0))
    );
    assert_eq!(device.read("again/b.bin").len(), 5000);
    assert_eq!(device.read("again/a/letter.txt").len(), 1800);
}

#[test]
fn folders_that_nothing_keeps_equal_are_found_out() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let words =
        ["trace", "gen", "stacksync", "--out", "day.trace", "--tree", "1MB", "--changes", "2"];
    device.run(&[&words[..], &["--clients", "2"]].concat()).ok();
    device.write("one/.keep", "");
    device.write("two/.keep", "");
    let run =
        device.run(&["trace", "exec", "day.trace", "one", "two", "--patience", "0"]).ends_with(1);
    assert!(run.stderr.contains("E0217") && run.stderr.contains("is missing"), "{run:?}");
    device.run(&["trace", "exec", "day.trace", "one"]).ends_with(2);
    device.write("no.trace", "nothing\n");
    let run = device.run(&["trace", "exec", "no.trace", "one"]).ends_with(2);
    assert!(run.stderr.contains("line 1 of the trace"), "{run:?}");
}

#[test]
fn results_go_to_a_folder_whose_name_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    std::fs::create_dir(device.folder.join("files")).unwrap();
    device.write("one.toml", "operation = \"upload\"\n[target]\nfolder = \"files\"\n");
    let out = std::ffi::OsStr::from_bytes(b"r\xff");
    for words in [
        &["bench", "run", "one.toml", "--json", "--out"][..],
        &["trace", "gen", "stacksync", "--tree", "1MB", "--changes", "1", "--json", "--out"],
    ] {
        let out = if words[0] == "bench" { out } else { std::ffi::OsStr::from_bytes(b"t\xff") };
        let output = device.command(words).arg(out).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

#[test]
fn a_file_of_benchcloud_is_measured_in_a_folder_and_in_a_store_and_what_fails_is_said() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let a1 = include_str!("../../../../experiments/benchcloud/appendix-a/a1.ini");
    // As it is, but for where its log goes.
    device.write("a1.ini", a1.replace("log_file =\n/tmp/", "log_file =\nlogs/"));
    device.run(&["bench", "run", "a1.ini"]).ends_with(2);
    std::fs::create_dir(device.folder.join("files")).unwrap();
    let store = format!("file:{}", device.folder.join("store").display());
    for target in ["files", store.as_str()] {
        let run = device.run(&["bench", "run", "a1.ini", "--target", target, "--json"]).ok();
        let summary = run.json();
        assert_eq!((&summary["asked"], &summary["failed"]), (&50.into(), &0.into()), "{run:?}");
        assert_eq!(summary["acknowledged_files"], 50);
        let page = String::from_utf8(device.read(summary["page"].as_str().unwrap())).unwrap();
        assert!(page.contains("Upload random binary files to dropbox"), "{page}");
    }
    assert!(device.has("logs/dropbox_upload_random_binary_50f_100KB_25threads.log"));
    assert_eq!(std::fs::read_dir(device.folder.join("files/benchmark-test")).unwrap().count(), 50);

    // What was uploaded is what a download finds.
    let a2 = include_str!("../../../../experiments/benchcloud/appendix-a/a2.ini");
    device.write("a2.ini", a2.replace("/tmp/", ""));
    let download = ["bench", "run", "a2.ini", "--target", &store];
    let run = device.run(&download).ok();
    assert!(run.stdout.contains("download  50 done, 0 failed"), "{run:?}");
    let again = device.run(&download).ends_with(2);
    assert!(again.stderr.contains("an empty folder is needed"), "{again:?}");

    // No store takes an object of 100 MB.
    let large = a1.replace("size = 102400", "size = 104857600").replace("= 50", "= 2");
    device.write("large.ini", large.replace("log_file =\n/tmp/", "log_file =\nlogs/"));
    let run = device.run(&["bench", "run", "large.ini", "--target", &store]).ends_with(1);
    assert!(run.stderr.contains("E0218") && run.stderr.contains("2 operations failed"), "{run:?}");
    device.write("wire.toml", "operation = \"upload\"\n[target]\nfolder = \"files\"\n");
    let words = ["bench", "run", "wire.toml", "--capture-port", "80"];
    let mut command = device.command(&words);
    let run = command.env("PATH", room.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code() == Some(1) && stderr.contains("E0219"), "{run:?}");
    assert!(stderr.contains("tcpdump is not installed"), "{stderr}");
    let run = device.run(&[&words[..], &["--out", "files"]].concat()).ends_with(2);
    assert!(run.stderr.contains("results would go into"), "{run:?}");
    device.write("bad.toml", "operation = \"upload\"\nthread = 2\n");
    let run = device.run(&["bench", "run", "bad.toml"]).ends_with(2);
    assert!(run.stderr.contains("did you mean 'threads'?"), "{run:?}");
}
