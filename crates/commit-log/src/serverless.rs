//! The serverless coordinator: passive stores that need not be trusted, and clients that agree by what they find there.

pub mod rounds;
pub mod slot_log;
