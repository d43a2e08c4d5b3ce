//! RELEASES: two releases out of an archive with a folder per release.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{InputOptions, align_times};
use crate::failure::{Context, Result, fail};

/// Unpacks two releases and gives equal files equal times (the archive has one time for all).
pub(super) fn build(
    folder: &Path,
    options: &InputOptions,
    older: &str,
    newer: &str,
) -> Result<String> {
    let Some(archive) = options.releases.as_ref().filter(|archive| archive.exists()) else {
        return fail("no archive of releases; name one with --releases FILE");
    };
    let unpacked = folder.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let mut zstd = Command::new("zstd");
    zstd.args(["--decompress", "--long=31", "--stdout"]).arg(archive);
    let mut zstd = zstd.stdout(Stdio::piped()).spawn().context("zstd")?;
    let Some(stream) = zstd.stdout.take() else { return fail("zstd has no stdout") };
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--directory").arg(&unpacked);
    tar.args([format!("./{older}"), format!("./{newer}")]);
    let unpacked_well = tar.stdin(stream).status().context("tar")?.success();
    if !zstd.wait()?.success() || !unpacked_well {
        return fail(format!("cannot unpack {older} and {newer} of {}", archive.display()));
    }
    let update = folder.join("updates").join(newer);
    fs::rename(unpacked.join(older), folder.join("base"))?;
    fs::rename(unpacked.join(newer), &update)?;
    fs::remove_dir(&unpacked)?;
    let (same, other) = align_times(&folder.join("base"), &update)?;
    Ok(format!("{older} to {newer}: {same} files the same, {other} new or changed"))
}
