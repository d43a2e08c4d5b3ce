//! Worlds by the hundred, sound and broken ones; broken connections.

mod it {
    mod mutants;
    mod proxy;
    mod seeds;
}
