//! Tables 6.6 and 6.7: which value of each parameter is best by each aim, and which one the thesis chose.

use super::super::configuration::{Configuration, Variant};
use super::super::outcome::{Method, Row, mean};
use super::names;
use crate::page::Page;

/// A parameter, how its value is called, and what the thesis found: lowest use of the processor, shortest duration, largest ratio, and its choice.
struct Parameter {
    name: &'static str,
    value: fn(Configuration) -> String,
    published: [&'static str; 4],
}

const PARAMETERS: [Parameter; 6] = [
    Parameter {
        name: "chunker",
        value: |one| if one.chunking.fingerprint.is_some() { "TTTD" } else { "Fixed" }.to_owned(),
        published: ["Fixed", "Fixed", "TTTD", "TTTD"],
    },
    Parameter {
        name: "fingerprint",
        value: |one| one.chunking.fingerprint.map_or("None", |known| known.name()).to_owned(),
        published: ["None", "None", "Adler32", "Adler32"],
    },
    Parameter {
        name: "compression",
        value: |one| one.compression.name().to_owned(),
        published: ["None", "None", "Bzip2", "Gzip"],
    },
    Parameter {
        name: "chunk size",
        value: |one| format!("{} KB", one.chunking.average_kib),
        published: ["16 KB", "16 KB", "4 KB", "4 KB"],
    },
    Parameter {
        name: "pause",
        value: |one| format!("{} ms", one.pause_ms),
        published: ["30 ms", "0 ms", "indifferent", "at least 30 ms"],
    },
    Parameter {
        name: "multichunk size",
        value: |one| format!("{} KB", one.multichunk_kib),
        published: ["125 KB", "250 KB", "250 KB", "250 KB"],
    },
];

/// Adds the table, of the variant that was measured first.
pub(super) fn table(page: Page, rows: &[Row], variant: Variant) -> Page {
    let cells = PARAMETERS.iter().map(|parameter| {
        let Parameter { name, published: [calm, fast, small, chosen], .. } = parameter;
        let best = |value: fn(&Row) -> f64, printed: &str| {
            format!("{} ({printed})", parameter.best(rows, variant, value))
        };
        vec![
            (*name).to_owned(),
            best(|row| -row.processor_percent(), calm),
            best(|row| -row.seconds(), fast),
            best(Row::ratio, small),
            (*chosen).to_owned(),
        ]
    });
    let headings =
        ["parameter", "least processor", "least time", "largest ratio", "chosen by the thesis"];
    page.heading("Tables 6.6 and 6.7: the best value of each parameter, by its mean")
        .words(&headings, cells.collect())
}

impl Parameter {
    /// Returns the value of which the mean over datasets is largest; where only one was measured there is no choice.
    fn best(&self, rows: &[Row], variant: Variant, aim: fn(&Row) -> f64) -> String {
        let with_value = |row: &Row| match row.method {
            // What cuts at fixed offsets is the same in both.
            Method::Thesis(one, known)
                if known == variant || one.chunking.fingerprint.is_none() =>
            {
                Some((self.value)(one))
            }
            _ => None,
        };
        let values: Vec<_> = rows.iter().filter_map(with_value).collect();
        let datasets = names(rows.iter().map(|row| &row.dataset));
        let mean_of = |value: &String| {
            let of_dataset = |dataset: &String| {
                let mine = rows.iter().filter(|row| row.dataset == *dataset);
                mean(mine.filter(|row| with_value(row).as_ref() == Some(value)), aim)
            };
            datasets.iter().map(of_dataset).sum::<f64>()
        };
        let mut known: Vec<_> =
            names(values.iter()).into_iter().map(|value| (mean_of(&value), value)).collect();
        known.sort_by(|one, other| other.0.total_cmp(&one.0));
        match &known[..] {
            [] => "not measured".to_owned(),
            [(_, only)] => format!("only {only}"),
            // As the pause for the ratio: what makes no difference is not chosen between.
            [(most, _), .., (least, _)] if (most - least).abs() <= most.abs() * 1e-9 => {
                "indifferent".to_owned()
            }
            [(_, best), ..] => best.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::pass;
    use super::*;
    use crate::dataset::source_tree::SourceTree;

    #[test]
    fn the_best_value_is_found_and_what_makes_no_difference_is_said() {
        let room = tempfile::tempdir().unwrap();
        let dataset =
            SourceTree { seed: 5, versions: 4, files: 12 }.write("D", room.path()).unwrap();
        let wanted = [
            "Custom-250-0/Fixed-4/Cipher",
            "Custom-250-30/TTTD-4-Adler32/Gzip-Cipher",
            "Custom-250-0/TTTD-4-Adler32/Gzip-Cipher",
        ];
        let measured = Configuration::all()
            .into_iter()
            .filter(|one| wanted.contains(&one.to_string().as_str()));
        let rows: Vec<_> = measured
            .flat_map(|one| pass::measure(one, Variant::Correct, &dataset).unwrap())
            .collect();
        let best =
            |place: usize, rows: &[Row]| PARAMETERS[place].best(rows, Variant::Correct, Row::ratio);
        assert_eq!(
            ["chunker", "fingerprint", "compression"],
            [0, 1, 2].map(|place| PARAMETERS[place].name)
        );
        assert_eq!([0, 1, 2].map(|place| best(place, &rows)), ["TTTD", "Adler32", "Gzip"]);
        assert_eq!(best(3, &rows), "only 4 KB");
        assert_eq!(best(3, &[]), "not measured");
        let is_tttd = |row: &&Row| matches!(row.method, Method::Thesis(one, _) if one.chunking.fingerprint.is_some());
        let tttd: Vec<_> = rows.iter().filter(is_tttd).cloned().collect();
        assert_eq!(best(4, &tttd), "indifferent");
        let page = table(Page::new(""), &rows, Variant::Correct).markdown();
        assert!(page.contains("| chunker | ") && page.contains("TTTD (TTTD)"), "{page}");
    }
}
