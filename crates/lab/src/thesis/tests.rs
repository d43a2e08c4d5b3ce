use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use content::chunker::Chunks;

use super::chain::tests::undo;
use super::configuration::Compression;
use super::outcome::Method;
use super::pass::{Pass, name_of};
use super::*;
use crate::dataset::source_tree::SourceTree;
use crate::files;

fn plan(folder: &std::path::Path, only: &str) -> Plan {
    Plan {
        datasets: Vec::new(),
        only: Some(only.to_owned()),
        variants: vec![Variant::Correct, Variant::Faithful],
        seed: 1,
        work: folder.to_owned(),
        size: Size::Small,
    }
}

fn small_dataset(folder: &std::path::Path) -> Dataset {
    SourceTree { seed: 5, versions: 7, files: 12 }.write("D", folder).unwrap()
}

#[test]
fn there_are_144_configurations_named_as_in_the_thesis() {
    let names: Vec<_> = Configuration::all().iter().map(ToString::to_string).collect();
    let distinct: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), 144);
    for name in [
        "Custom-125-0/Fixed-4/Cipher",
        "Custom-125-0/TTTD-4-PLAIN/Cipher",
        "Custom-250-30/TTTD-4-Adler32/Gzip-Cipher",
        "Custom-250-30/TTTD-16-Rabin/Bzip2-Cipher",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

/// Whatever a ratio says: from what was stored each version of each file can be put together again.
#[test]
fn every_version_can_be_read_from_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = small_dataset(folder.path());
    // Every chunker, and every chain with some of them.
    for (number, configuration) in Configuration::all().into_iter().enumerate() {
        let chain = [Compression::None, Compression::Gzip, Compression::Bzip2][number / 4 % 3];
        if configuration.pause_ms > 0
            || configuration.multichunk_kib > 125
            || configuration.compression != chain
        {
            continue;
        }
        for variant in [Variant::Correct, Variant::Faithful] {
            let stored = Rc::new(RefCell::new(Vec::new()));
            let mut pass = Pass::new(configuration, variant).unwrap();
            let taken = Rc::clone(&stored);
            pass.stored = Box::new(move |multichunk| taken.borrow_mut().push(multichunk));
            for version in &dataset.versions {
                pass.version("D", &dataset.files(version).unwrap()).unwrap();
            }
            let opened: Vec<Vec<u8>> = stored
                .take()
                .iter()
                .map(|one| undo(configuration.compression, one).unwrap())
                .collect();
            let chunks: HashMap<_, _> =
                opened.iter().flat_map(|plain| container::tests::read(plain).unwrap()).collect();
            let chunker = configuration.chunking.chunker(variant).unwrap();
            for path in dataset.versions.iter().flat_map(|version| dataset.files(version).unwrap())
            {
                let bytes = files::read(&path).unwrap();
                let cut =
                    Chunks::new(chunker.as_ref(), &bytes).map(|chunk| chunks[&name_of(chunk)]);
                assert_eq!(cut.collect::<Vec<_>>().concat(), bytes, "{configuration}");
            }
        }
    }
}

#[test]
fn what_is_counted_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = small_dataset(folder.path());
    let configuration = Configuration::all()[1];
    assert_eq!(configuration.compression, Compression::None);
    let thesis = pass::measure(configuration, Variant::Correct, &dataset).unwrap();
    let ours = ours::measure(&dataset).unwrap();
    for rows in [&thesis, &ours] {
        assert_eq!(rows.len(), 7);
        let mut new_bytes = 0;
        for row in rows {
            new_bytes += row.new_chunks.bytes;
            assert!(row.chunks.bytes >= row.files.bytes);
            assert!(row.ratio() > 0.0 && row.seconds() > 0.0);
        }
        // The first version has everything new but what it has twice.
        assert_eq!(rows[0].files.count, 12);
        assert_eq!(rows[0].new_files, rows[0].files);
        assert!(rows[6].new_files.count < rows[6].files.count);
        let last = &rows[6];
        assert!(last.ratio() > rows[0].ratio());
        assert_eq!(last.dataset_bytes_so_far, rows.iter().map(|row| row.files.bytes).sum::<u64>());
        // Whoever has nothing needs the whole version; whoever lacks five needs less.
        let [all, five, ten] = last.reconstructions;
        assert!(all.unwrap().chunks > five.unwrap().chunks);
        assert!(five.unwrap().containers >= five.unwrap().chunks);
        assert_eq!(ten, None);
        assert!(new_bytes < last.dataset_bytes_so_far);
    }
    // Nothing compresses: what is stored is what is new, and little more.
    let stored = thesis[6].stored_bytes_so_far as f64;
    let new: u64 = thesis.iter().map(|row| row.new_chunks.bytes).sum();
    assert!((1.0..1.05).contains(&(stored / new as f64)), "{stored} of {new}");
}

#[test]
fn a_run_writes_raw_figures_a_page_and_drawings() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = Output::new(out.clone(), out.clone()).unwrap();
    let mut said = Vec::new();
    let mut plan = plan(folder.path(), "250-0/TTTD-16-Adler");
    let dataset = small_dataset(&folder.path().join("D"));
    plan.datasets = vec![(dataset.name.clone(), Some(dataset.folder.clone()))];
    run(&plan, &output, &mut |line| said.push(line.to_owned())).unwrap();
    // The dataset, ours, and three compressions, twice.
    assert_eq!(said.len(), 1 + 1 + 6, "{said:#?}");
    let text = |name: &str| String::from_utf8(files::read(&out.join(name)).unwrap()).unwrap();
    let csv = text("syncany-chunking.csv");
    assert_eq!(csv.lines().count(), 1 + 7 * dataset.versions.len());
    let columns = csv.lines().next().unwrap().split(',').count();
    assert_eq!(columns, 4 + 30);
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    let page = text("syncany-chunking.md");
    for part in
        ["Table 6.3", "**ours**", "TTTD-16-Adler32/Bzip2-Cipher, thesis-faithful", "Table 6.8"]
    {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    for line in page.lines().filter_map(|line| line.strip_prefix("![")) {
        let name = line.split(']').next().unwrap();
        let drawing = text(&format!("{name}.svg"));
        assert!(drawing.contains("polyline") && drawing.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn a_pattern_that_fits_nothing_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let output = Output::new(folder.path().join("out"), folder.path().join("out")).unwrap();
    let error = run(&plan(folder.path(), "TTTD-5"), &output, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LabError::NoSuchConfiguration { .. }));
    assert!(!folder.path().join("A").exists());
}

#[test]
fn ours_is_one_of_the_methods_and_has_no_time_of_chunking_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rows = ours::measure(&small_dataset(folder.path())).unwrap();
    assert!(rows.iter().all(|row| row.method == Method::Ours && row.chunking.is_none()));
}
