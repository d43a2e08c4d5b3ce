//! The serverless coordinator: passive stores that need not be trusted, and clients that agree by what they find there.
//!
//! Reading order: [`rounds`] (how a slot is agreed on), [`group`], [`candidate`], [`certifier`], [`slot_log`].

pub mod candidate;
pub mod certifier;
pub mod group;
pub mod rounds;
pub mod slot_log;
