//! Worlds by the hundred, sound and broken ones.

mod it {
    mod mutants;
    mod seeds;
}
