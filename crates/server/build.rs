//! Makes the place of the web app, and tells cargo when the app was built anew, so that a program that carries it is built anew, too.

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let dist = Path::new("../../web/dist");
    // Programs of developers read the app where it lies, and find nothing in a folder that was not there when they were built. Where
    // none can be made, they have no app.
    let _made = std::fs::create_dir_all(dist);
    if std::env::var("PROFILE").as_deref() == Ok("release") {
        println!("cargo:rerun-if-changed={}", dist.display());
    }
}
