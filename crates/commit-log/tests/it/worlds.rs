//! Models of the agreement: the state machines of the room, run by `stateright` through everything that stores and
//! clients can do to them.
//!
//! The machines are the real ones. What a store holds, and what is decided, is written down here a second time, from
//! the specification, so that a wrong machine does not judge itself.

#[path = "worlds/asking.rs"]
pub(crate) mod asking;
#[path = "worlds/checking.rs"]
pub(crate) mod checking;
#[path = "worlds/disk.rs"]
pub(crate) mod disk;
#[path = "worlds/growing.rs"]
pub(crate) mod growing;
#[path = "worlds/helping.rs"]
pub(crate) mod helping;
#[path = "worlds/mending.rs"]
pub(crate) mod mending;
#[path = "worlds/moving.rs"]
pub(crate) mod moving;
#[path = "worlds/passive.rs"]
pub(crate) mod passive;
#[path = "worlds/scenarios.rs"]
pub(crate) mod scenarios;
#[path = "worlds/slot.rs"]
pub(crate) mod slot;
#[path = "worlds/truth.rs"]
pub(crate) mod truth;
