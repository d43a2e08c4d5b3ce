//! Worlds by the hundred, sound and broken ones; slow stores and broken connections.

mod it {
    mod agreement;
    mod clouds;
    mod interrupted;
    mod mutants;
    mod outage;
    mod replacing;
    mod seeds;
    mod several;
}
