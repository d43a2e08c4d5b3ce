//! File systems of their own, mounted in a namespace of a child process, so that the machine keeps its mounts.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{ALL, FileError, FileSystem, at, opened, stage};

/// A child process that holds mounts until it is dropped.
struct Mounted {
    child: Child,
    root: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Mounts a small file system over a temporary folder, or says why not. `$0` in the script is the folder.
fn mounted(folder: &tempfile::TempDir, script: &str) -> Option<Mounted> {
    let script = format!("{script} && echo ready && exec cat");
    let spawned = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            println!("skipped, since no namespace could be made: {error}");
            return None;
        }
    };
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut()?).read_line(&mut answer).ok()?;
    let root = format!("/proc/{}/root{}", child.id(), folder.path().display());
    let mounted = Mounted { child, root: root.into() };
    if answer.trim() == "ready" && mounted.root.join(".").exists() {
        return Some(mounted);
    }
    println!("skipped, since nothing may be mounted in a namespace here");
    None
}

#[test]
fn full_disk_is_said_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=256k,nr_inodes=20 none \"$0\"";
    let Some(mounted) = mounted(&folder, script) else { return };
    let files = opened(&mounted.root, ALL);
    stage(&files, 1, b"old");
    let old = files.install(1, &at("file"), None).unwrap();
    let mut staged = files.stage(2).unwrap();
    let full = staged.write_all(&vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(staged);
    assert_eq!(files.stat(&at("file")).unwrap(), Some(old));
    stage(&files, 2, &vec![2; 100_000]);
    files.install(2, &at("file"), Some(&old)).expect("the space is free again");
    // Now no file can be made any more, of whatever size.
    let full = (10..100).find_map(|token| match files.stage(token) {
        Ok(staged) => {
            staged.finish(0o644, model::Timestamp::default()).unwrap();
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(full, Some(FileError::NoSpace(_))), "{full:?}");
    assert!(matches!(files.make_directory(&at("directory"), 0o755), Err(FileError::NoSpace(_))));
    files.clear_staged().unwrap();
    files.make_directory(&at("directory"), 0o755).expect("there is room again");
}

#[test]
fn read_only_file_system_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs none \"$0\" && mkdir -p \"$0/.syncline/tmp\" && echo old >\"$0/file\" \
                  && mount -o remount,ro \"$0\"";
    let Some(mounted) = mounted(&folder, script) else { return };
    let files = super::NativeFileSystem::open(&mounted.root).unwrap();
    assert!(matches!(files.stage(1), Err(FileError::ReadOnly(_))));
    assert!(matches!(files.make_directory(&at("new"), 0o755), Err(FileError::ReadOnly(_))));
    let stat = files.stat(&at("file")).unwrap().unwrap();
    assert!(matches!(files.rename(&at("file"), &at("new")), Err(FileError::ReadOnly(_))));
    let set = files.set_attributes(&at("file"), &stat, 0o600, None);
    assert!(matches!(set, Err(FileError::ReadOnly(_))));
}

#[test]
fn other_file_system_inside_the_folder_takes_everything_but_moves_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs none \"$0\" && mkdir \"$0/mounted\" \
                  && mount -t tmpfs none \"$0/mounted\"";
    let Some(mounted) = mounted(&folder, script) else { return };
    let files = opened(&mounted.root, ALL);
    files.make_directory(&at("mounted/one"), 0o755).unwrap();
    files.rename(&at("mounted/one"), &at("mounted/two")).unwrap();
    assert_eq!(files.list(&at("mounted")).unwrap().len(), 1);
    assert_eq!(files.other_devices.lock().len(), 1);
    files.make_durable().unwrap();
    assert_eq!(files.other_devices.lock().len(), 0);
    stage(&files, 1, b"content");
    let refused = files.install(1, &at("mounted/file"), None).unwrap_err();
    assert!(refused.to_string().contains("lies on another file system"), "{refused}");
    let mut made = std::fs::File::options();
    let mut made =
        made.write(true).create_new(true).open(mounted.root.join("mounted/file")).unwrap();
    made.write_all(b"theirs").unwrap();
    let stat = files.stat(&at("mounted/file")).unwrap().unwrap();
    let refused = files.install(1, &at("mounted/file"), Some(&stat)).unwrap_err();
    assert!(matches!(refused, FileError::Other { .. }), "{refused}");
    let refused = files.trash(&at("mounted/file"), &stat, "label").unwrap_err();
    assert!(matches!(refused, FileError::Other { .. }), "{refused}");
    assert_eq!(files.stat(&at("mounted/file")).unwrap(), Some(stat));
    files.install(1, &at("file"), None).expect("what stands aside is still there");
}
