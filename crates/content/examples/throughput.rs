//! Measures what this room does to real bytes: `throughput PATH`, where PATH is a file or a folder.
//!
//! Prints the speed of cutting with every search of the processor, of all chunkers and what they find twice, of cutting and naming, and
//! what packing every distinct chunk in path order costs and stores at several zstd levels, plain and sealed.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures reads files and a clock, and prints"
)]

use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use content::chunker::minimum::Search;
use content::keyring::{Passphrase, SecretKey};
use content::pack::RecordOpener;
use content::{
    ChunkSizes, Chunker, ChunkerKind, Chunks, DeviceKeys, FinishedPack, MinimumChunker,
    NewWorkspace, PackWriter, Transform, WorkspaceContentKeys, WorkspaceKeys, average_for,
    looks_incompressible,
};
use model::content::ChunkRef;
use model::{DeviceId, Genesis, Mode, Random, Timestamp};
use zeroize::Zeroizing;

/// Each speed is the best of this many runs.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: throughput PATH")?;
    let mut paths = Vec::new();
    collect(Path::new(&path), &mut paths)?;
    let started = Instant::now();
    let files = paths.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
    let total: usize = files.iter().map(Vec::len).sum();
    println!("{} files, {total} bytes, read in {:.2?}", files.len(), started.elapsed());

    let keys = plain_keys()?;
    measure_chunkers(&files, keys.content())?;
    compare_chunkers(&files, keys.content())?;
    measure_naming(&files, keys.content())?;
    for level in [-1, 1, 2, 3] {
        measure_packing(&files, &keys, Transform::Zstd { level })?;
    }
    measure_packing(&files, &keys, Transform::None)?;
    println!("sealed:");
    let keys = sealed_keys()?;
    measure_packing(&files, &keys, Transform::default())?;
    measure_packing(&files, &keys, Transform::None)
}

/// Dice that always fall the same.
#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn plain_keys() -> Result<WorkspaceKeys, Box<dyn Error>> {
    let genesis = Genesis {
        name: "tree".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    };
    Ok(WorkspaceKeys::open(&genesis, None, Arc::new(Fixed))?)
}

fn sealed_keys() -> Result<WorkspaceKeys, Box<dyn Error>> {
    let passphrase = Passphrase::new(Zeroizing::new("to measure".to_owned()));
    let made = NewWorkspace::create("tree", Timestamp::default(), &passphrase, &Fixed)?;
    let (device, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::random(&Fixed));
    let device = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed)?;
    Ok(WorkspaceKeys::open(&made.genesis, Some(device), Arc::new(Fixed))?)
}

/// Collects regular files in path order, as a first sync meets them.
fn collect(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_file() {
        paths.push(path.to_owned());
    } else if kind.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        entries.sort();
        entries.iter().try_for_each(|entry| collect(entry, paths))?;
    }
    Ok(())
}

fn best_speed(total: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    });
    total as f64 / times.fold(f64::INFINITY, f64::min) / 1e9
}

fn measure_chunkers(files: &[Vec<u8>], keys: &WorkspaceContentKeys) -> Result<(), Box<dyn Error>> {
    let mut bytes = files.concat();
    bytes.truncate(512 << 20);
    let report = |name: String, chunker: &dyn Chunker| {
        let count = Chunks::new(chunker, &bytes).count();
        let speed = best_speed(bytes.len(), || {
            std::hint::black_box(Chunks::new(chunker, &bytes).count());
        });
        println!("cut {name:>16}: {speed:6.2} GB/s, mean chunk {}", bytes.len() / count.max(1));
    };
    for search in Search::available() {
        let sizes = ChunkSizes::around(average_for(0, false))?;
        let chunker = MinimumChunker::with_search(sizes, keys.chunk_cuts().as_bytes(), search);
        report(format!("minimum {search:?}"), &chunker);
    }
    let fastcdc = keys.chunker(ChunkerKind::FastCdc, average_for(0, false))?;
    report("fastcdc".to_owned(), fastcdc.as_ref());
    Ok(())
}

/// Prints how fast each chunker cuts, by one thread, and how many bytes there are for one that is distinct.
fn compare_chunkers(files: &[Vec<u8>], keys: &WorkspaceContentKeys) -> Result<(), Box<dyn Error>> {
    let (namer, total) = (keys.namer(), files.iter().map(Vec::len).sum());
    for average in [2 << 10, 4 << 10, 8 << 10, 16 << 10] {
        for kind in ChunkerKind::ALL {
            let chunker = keys.chunker(kind, average)?;
            let speed = best_speed(total, || {
                for file in files {
                    std::hint::black_box(Chunks::new(chunker.as_ref(), file).count());
                }
            });
            let (mut seen, mut distinct, mut count) = (HashSet::new(), 0, 0);
            for bytes in files.iter().flat_map(|file| Chunks::new(chunker.as_ref(), file)) {
                count += 1;
                if seen.insert(namer.name(bytes)) {
                    distinct += bytes.len();
                }
            }
            let ratio = total as f64 / distinct as f64;
            let (name, mean) = (kind.name(), total / count);
            println!(
                "{name:>14} around {:>2} KiB: {speed:6.2} GB/s, {ratio:6.3} to 1, mean chunk {mean}",
                average >> 10
            );
        }
    }
    Ok(())
}

fn measure_naming(files: &[Vec<u8>], keys: &WorkspaceContentKeys) -> Result<(), Box<dyn Error>> {
    let (namer, total) = (keys.namer(), files.iter().map(Vec::len).sum());
    for average in [16 << 10, 64 << 10, 256 << 10] {
        let chunker = keys.chunker(ChunkerKind::Minimum, average)?;
        let speed = best_speed(total, || {
            for file in files {
                for chunk in Chunks::new(chunker.as_ref(), file) {
                    std::hint::black_box(namer.name(chunk));
                }
            }
        });
        println!("cut + name, {:>3} KiB: {speed:6.2} GB/s", average >> 10);
    }
    Ok(())
}

fn measure_packing(
    files: &[Vec<u8>],
    workspace: &WorkspaceKeys,
    transform: Transform,
) -> Result<(), Box<dyn Error>> {
    let keys = workspace.content();
    let namer = keys.namer();
    let mut writer = PackWriter::new(transform, &workspace.packs())?;
    let (mut seen, mut packs) = (HashSet::new(), Vec::new());
    let (mut chunk_count, mut distinct_bytes, mut packing) = (0_usize, 0_usize, 0.0);
    let started = Instant::now();
    for file in files {
        let incompressible = looks_incompressible(&file[..file.len().min(1 << 20)]);
        let average = average_for(file.len() as u64, incompressible);
        let chunker = keys.chunker(ChunkerKind::Minimum, average)?;
        for bytes in Chunks::new(chunker.as_ref(), file) {
            let chunk = ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
            chunk_count += 1;
            if !seen.insert(chunk.id) {
                continue;
            }
            distinct_bytes += bytes.len();
            let pushed = Instant::now();
            writer.push(chunk, bytes)?;
            if writer.is_full() {
                packs.push(writer.finish()?);
            }
            packing += pushed.elapsed().as_secs_f64();
        }
    }
    if !writer.is_empty() {
        packs.push(writer.finish()?);
    }
    let total = started.elapsed().as_secs_f64();
    let stored: usize = packs.iter().map(|pack| pack.bytes.len()).sum();
    let indexes: usize = packs.iter().map(|pack| pack.index.encode().len()).sum();
    println!("{transform:?}: {stored} bytes stored in {} packs, {indexes} in indexes", packs.len());
    println!("  {} of {chunk_count} chunks, {distinct_bytes} bytes are distinct", seen.len());
    println!("  {packing:.2} s packing of {total:.2} s; {:.2} s opening", open_all(&packs, keys)?);
    Ok(())
}

/// Returns how many seconds it takes to open and verify everything, record by record.
fn open_all(packs: &[FinishedPack], keys: &WorkspaceContentKeys) -> Result<f64, Box<dyn Error>> {
    let started = Instant::now();
    let (mut opener, namer) = (RecordOpener::default(), keys.namer());
    for pack in packs {
        for (number, entry) in pack.index.records().iter().enumerate() {
            let range = entry.stored_range();
            let stored = &pack.bytes[range.start as usize..range.end as usize];
            let record = opener.open(&pack.index, number, stored, &namer)?;
            record.verified_chunks().try_for_each(|chunk| chunk.map(|_| ()))?;
            opener.recycle(record);
        }
    }
    Ok(started.elapsed().as_secs_f64())
}
