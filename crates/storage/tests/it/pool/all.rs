//! Several stores as one, on good days and bad ones.

mod conforming;
mod named;
mod reads;
mod repairs;
mod storms;
mod uneven;
mod world;
mod writes;
