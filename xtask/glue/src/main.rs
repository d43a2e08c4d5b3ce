//! Writes the JavaScript that stands between a page and a module for WebAssembly: `glue MODULE FOLDER`.
//!
//! It is a program of its own, so that nobody else has to build what it takes.
#![forbid(unsafe_code)]

use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(module), Some(folder), None) = (words.next(), words.next(), words.next()) else {
        return Err("usage: glue MODULE FOLDER".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("core").web(true)?.typescript(true);
    bindgen.remove_name_section(true).remove_producers_section(true).generate(folder)?;
    Ok(())
}
