//! `syncline bench ls`, `plot` and `compare`: results that there are already.

use std::path::Path;

use lab::bench::results::{self, Compared, Found, Kept, number};
use lab::output::Output;
use serde_json::{Value, json};

use super::refusal;
use crate::arguments::{BenchCompareArguments, BenchLsArguments, BenchPlotArguments};
use crate::context::Context;
use crate::error::Result;
use crate::text::size;

pub(super) fn list(context: &Context<'_>, arguments: &BenchLsArguments) -> Result<u8> {
    let found = results::list(&arguments.out).map_err(refusal)?;
    for result in &found {
        match result {
            Found::Benchmark(kept) => tell(context, kept),
            Found::Probe { folder, name } => {
                let folder = folder.display().to_string();
                context.ui.answer(format!("{folder}\n  a probe of {name}"));
                context.ui.json(&json!({
                    "schema": "syncline.bench/1", "type": "result", "kind": "probe", "folder": folder, "name": name,
                }));
            }
        }
    }
    if found.is_empty() {
        context.ui.answer(format!("there is no result in {}", arguments.out.display()));
    }
    Ok(0)
}

fn tell(context: &Context<'_>, kept: &Kept) {
    let Kept { folder, numbers } = kept;
    let words = |key: &str| numbers[key].as_str().unwrap_or_default();
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let lost = numbers["lost"].as_array().map_or(0, Vec::len);
    let done: u64 = numbers["operations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|operation| count(&operation["done"]))
        .sum();
    let (failed, rate) = (count(&numbers["failed"]), numbers["bytes_per_second"].as_f64());
    let folder = folder.display().to_string();
    let title = match words("description") {
        "" => "a benchmark",
        description => description,
    };
    context.ui.answer(format!(
        "{folder}\n  {title}: {}\n  {done} done, {failed} failed, {lost} lost, {}/s",
        words("target"),
        size(rate.unwrap_or_default() as u64)
    ));
    context.ui.json(&json!({
        "schema": "syncline.bench/1", "type": "result", "kind": "benchmark", "folder": folder, "description": words("description"),
        "target": words("target"), "done": done, "failed": failed, "lost": lost, "bytes_per_second": rate,
    }));
}

pub(super) fn plot(context: &Context<'_>, arguments: &BenchPlotArguments) -> Result<u8> {
    let kept = Kept::open(&arguments.result).map_err(refusal)?;
    let drawings = kept.drawings().map_err(refusal)?;
    let out = arguments.out.as_ref().unwrap_or(&arguments.result);
    let output = Output::new(out.clone(), out.clone()).map_err(refusal)?;
    for (name, svg) in drawings {
        output.write_svg(name, &svg).map_err(refusal)?;
        let path = out.join(format!("{name}.svg")).display().to_string();
        context.ui.json(&json!({"schema": "syncline.bench/1", "type": "drawing", "path": path}));
        context.ui.answer(path);
    }
    Ok(0)
}

pub(super) fn compare(context: &Context<'_>, arguments: &BenchCompareArguments) -> Result<u8> {
    let open = |folder: &Path| Kept::open(folder).map_err(refusal);
    let (one, other) = (open(&arguments.one)?, open(&arguments.other)?);
    let differences = results::differences(&one, &other);
    for difference in &differences {
        context.ui.note(difference);
    }
    let compared = results::compare(&one, &other);
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    context.ui.answer(format!("{:24}{:>16}{:>16}{:>16}", "", "first", "second", "second/first"));
    for row in &compared {
        let Compared { what, one, other } = row;
        let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        context.ui.answer(format!("{what:24}{:>16}{:>16}{ratio:>16}", cell(*one), cell(*other)));
    }
    let page = match &arguments.out {
        Some(out) => {
            let output = Output::new(out.clone(), out.clone()).map_err(refusal)?;
            let page = results::page(&one, &other).map_err(refusal)?;
            output.write_page("comparison", &page).map_err(refusal)?;
            let page = out.join("comparison.html").display().to_string();
            context.ui.answer(format!("page: {page}"));
            Some(page)
        }
        None => None,
    };
    let rows: Vec<Value> = compared
        .iter()
        .map(|row| json!({"what": row.what, "one": row.one, "other": row.other, "ratio": row.ratio()}))
        .collect();
    context.ui.json(&json!({
        "schema": "syncline.bench/1", "type": "comparison", "rows": rows, "differences": differences, "page": page,
    }));
    Ok(0)
}
