//! Decorators that any store may wear: retry, a limit of concurrent calls, a scope inside a shared store.

mod limit;
mod retry;
mod scoped;

pub use limit::Limited;
pub use retry::{Retrying, Waiting};
pub use scoped::Scoped;
