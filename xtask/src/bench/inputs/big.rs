//! BIG: one file of alternating random and text blocks, and five edits of it.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::{SEED, base_time, set_time, update_time};
use crate::failure::{Context, Result};
use crate::random::Random;

const BLOCK: u64 = 64 * 1024;
const FILE: &str = "big.bin";

/// A 1 GiB file and: 1 byte prepended, 100 KB in the middle, 1 MB appended, 5 % scattered in
/// pieces of 4 KiB and of 1 MiB.
pub(super) fn build(folder: &Path, quick: bool) -> Result<String> {
    let size: u64 = if quick { 4 << 20 } else { 1 << 30 };
    let large_piece: u64 = if quick { 64 << 10 } else { 1 << 20 };
    let base = folder.join("base");
    fs::create_dir_all(&base)?;
    let base = base.join(FILE);
    write_base(&base, size)?;
    let mut random = Random::for_part(SEED, "big edits");
    edited(&base, folder, "prepend1", 0, &random.bytes(1))?;
    edited(&base, folder, "insert100k", size / 2, &random.bytes(100_000))?;
    edited(&base, folder, "append1m", size, &random.bytes(1_000_000))?;
    scattered(&base, folder, "scatter5", 4096, &mut random)?;
    scattered(&base, folder, "scatter5-1m", large_piece, &mut random)?;
    Ok(format!("{size} bytes, alternating 64 KiB random and text; 5 edits"))
}

fn write_base(path: &Path, size: u64) -> Result<()> {
    let mut random = Random::for_part(SEED, "big");
    let mut file = BufWriter::new(File::create(path).context(path.display())?);
    for block in 0..size / BLOCK {
        let length = BLOCK as usize;
        let bytes = if block % 2 == 0 { random.bytes(length) } else { random.text(length) };
        file.write_all(&bytes)?;
    }
    file.flush()?;
    drop(file);
    set_time(path, base_time())
}

/// Copies the base with `piece` inserted at one place.
fn edited(base: &Path, folder: &Path, name: &str, at: u64, piece: &[u8]) -> Result<()> {
    let path = update_path(folder, name)?;
    let mut source = File::open(base)?;
    let mut target = BufWriter::new(File::create(&path)?);
    std::io::copy(&mut Read::by_ref(&mut source).take(at), &mut target)?;
    target.write_all(piece)?;
    std::io::copy(&mut source, &mut target)?;
    target.flush()?;
    drop(target);
    set_time(&path, update_time())
}

/// Copies the base with 5 % of it overwritten, one piece in every stretch of 20 pieces.
fn scattered(
    base: &Path,
    folder: &Path,
    name: &str,
    piece: u64,
    random: &mut Random,
) -> Result<()> {
    let path = update_path(folder, name)?;
    fs::copy(base, &path)?;
    let mut file = File::options().write(true).open(&path)?;
    let size = file.metadata()?.len();
    for stretch in 0..size / (20 * piece) {
        let at = (stretch * 20 + random.below(20)) * piece;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&random.bytes(usize::try_from(piece).unwrap_or(0)))?;
    }
    drop(file);
    set_time(&path, update_time())
}

fn update_path(folder: &Path, name: &str) -> Result<std::path::PathBuf> {
    let update = folder.join("updates").join(name);
    fs::create_dir_all(&update)?;
    Ok(update.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_change_what_their_name_says() {
        let room = tempfile::tempdir().unwrap();
        fs::create_dir_all(room.path().join("updates")).unwrap();
        build(room.path(), true).unwrap();
        let base = fs::read(room.path().join("base").join(FILE)).unwrap();
        let edit =
            |name: &str| fs::read(room.path().join("updates").join(name).join(FILE)).unwrap();
        assert_eq!(edit("prepend1")[1..], base);
        assert_eq!(edit("append1m")[..base.len()], base);
        assert_eq!(edit("insert100k").len(), base.len() + 100_000);
        let scattered = edit("scatter5");
        let blocks = base.chunks(4096).zip(scattered.chunks(4096));
        let changed = blocks.filter(|(before, after)| before != after).count();
        assert_eq!(changed, base.len() / 4096 / 20);
    }
}
