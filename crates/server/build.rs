//! Tells cargo when the web app was built anew, so that a program that carries it is built anew, too.

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    // Programs of developers read it where it lies.
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        println!("cargo:rerun-if-changed=build.rs");
        return;
    }
    let dist = std::path::Path::new("../../web/dist");
    // What is not there counts as changed each time; the folder around it tells when it comes.
    let watched = if dist.exists() { dist } else { std::path::Path::new("../../web") };
    println!("cargo:rerun-if-changed={}", watched.display());
}
