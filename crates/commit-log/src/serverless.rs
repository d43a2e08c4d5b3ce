//! The serverless coordinator: passive stores that need not be trusted, and clients that agree by what they find there.
//!
//! Reading order: [`rounds`] (how a slot is agreed on), [`group`], [`membership`], [`candidate`], [`certifier`], [`helper`], [`slot_log`];
//! beside them, for comparison and for stores that can do less, [`ppaxos`] and [`disk_paxos`],
//! which [`older`] runs.

pub mod candidate;
pub mod certifier;
pub mod disk_paxos;
pub mod group;
pub mod helper;
pub mod identity;
pub mod membership;
pub mod older;
pub mod ppaxos;
pub mod rounds;
pub mod slot_log;
