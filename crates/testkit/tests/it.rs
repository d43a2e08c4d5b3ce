//! Worlds by the thousand.

mod it {
    mod seeds;
}
