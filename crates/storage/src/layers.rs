//! Decorators that any store may wear: opening when it is first used, retry, a limit of concurrent calls, fixed or found
//! by what the store bears, a limit of time, a mark that tells an empty store from none, a scope inside a shared store.

mod lazy;
mod limit;
mod marked;
mod paced;
mod retry;
mod scoped;
mod timed;

pub use lazy::Lazy;
pub use limit::Limited;
pub use marked::Marked;
pub use paced::{Paced, Paces};
pub use retry::{Retrying, Waiting};
pub use scoped::Scoped;
pub use timed::Timed;
