//! Whether the page stands still while it syncs a large file, by every method that is not to make it.
//!
//! The file lies on the disk, and the page has it in pieces: nobody has it in memory as a whole.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::cells::Edit;
use super::driver::{Driver, Order};
use super::{Bench, CALM_STAGNATION_MS, Network, demand_results, figures, report, row, sample};
use lab::output::{Output, say};

/// How many bytes are made at once.
const PIECE: u64 = 4 << 20;

/// What is done to the file.
const EDIT: Edit = Edit { kind: "insert", size: 1_000, places: 5 };

/// Measures all methods on one large file.
pub(super) fn run(bench: &Bench, output: &Output) -> Result<()> {
    let length = bench.options.large_length;
    let path = bench.setting.folder().join("large.bin");
    make(&path, bench.options.seed, length)?;
    say(&format!("a file of {length} bytes is made"));
    let mut driver = Driver::start(&bench.options.web)?;
    let browser = driver.open(&bench.url(Network::Loopback), &bench.account, bench.server.id())?;
    bench.warm_up(&mut driver, Network::Loopback)?;
    let mut rows = Vec::new();
    for run in 1..=bench.options.runs {
        let seed = bench.options.seed + 2 * u64::from(run);
        let order = Order {
            file: Some(&path),
            methods: &row::METHODS_LARGE,
            calm_ms: CALM_STAGNATION_MS,
            ..bench.order(EDIT, seed)
        };
        let found = driver.run(&order, Network::Loopback, run)?;
        for row in &found {
            let (gap, missed) = (row.longest_gap_ms.unwrap_or(f64::NAN), row.missed_ticks);
            say(&format!(
                "{}: {:.0} ms, longest gap {gap:.0} ms, missed {missed:?}, long tasks {:?}, {} up, {} down: {}",
                row.method, row.time_ms, row.long_tasks, row.up, row.down, row.result
            ));
        }
        rows.extend(found);
    }
    driver.end()?;
    output.write_csv("web-large", &row::csv_of(&rows))?;
    output.write_csv("web-large-ticks", &row::ticks_of(&rows))?;
    let drawing = figures::stagnation(&rows, &row::METHODS_LARGE);
    output.write_svg("web-stagnation-large", &drawing)?;
    let text = report::large(length, &browser, &rows);
    output.write_report("web-large", &text)?;
    say(&text);
    demand_results(&rows)
}

/// Makes a file of bytes by chance, a piece at a time.
#[expect(clippy::disallowed_methods, reason = "a file that a browser is to send")]
fn make(path: &Path, seed: u64, length: u64) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut file = BufWriter::new(file);
    let mut made = 0;
    while made < length {
        let piece = PIECE.min(length - made);
        // Bytes of an edit come from other seeds: those of one run beside the next.
        file.write_all(&sample::bytes_of(seed ^ (0x5eed_0000 + made / PIECE), piece as usize))?;
        made += piece;
    }
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it looks at what was made")]
    fn a_large_file_has_its_length_and_no_piece_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        make(&path, 1, PIECE + 5).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, PIECE + 5);
        assert_ne!(bytes[..5], bytes[PIECE as usize..]);
    }
}
