//! Decorators that any store may wear: opening when it is first used, retry, as many calls at once as the store bears, a
//! limit of time, a mark that tells an empty store from none, a scope inside a shared store. A [`Gate`] is what those
//! write that treat all calls alike.

mod gate;
mod lazy;
mod marked;
mod paced;
mod retry;
mod scoped;
mod timed;

pub use gate::{Answer, Gate, Operation};
pub use lazy::Lazy;
pub use marked::Marked;
pub use paced::{Paced, Paces};
pub use retry::{Retrying, Waiting};
pub use scoped::Scoped;
pub use timed::Timed;
