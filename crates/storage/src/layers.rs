//! Decorators that any store may wear: opening when it is first used, retry, a limit of concurrent calls, a limit of time,
//! a scope inside a shared store.

mod lazy;
mod limit;
mod retry;
mod scoped;
mod timed;

pub use lazy::Lazy;
pub use limit::Limited;
pub use retry::{Retrying, Waiting};
pub use scoped::Scoped;
pub use timed::Timed;
