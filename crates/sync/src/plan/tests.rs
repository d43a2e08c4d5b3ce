//! Plans are carried out in small worlds in memory; what matters is where they end.

mod case;
mod devices;
mod examples;
mod exhaustive;
mod mutants;
mod random;
mod world;
