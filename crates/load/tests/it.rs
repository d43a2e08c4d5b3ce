//! The lab against a real server in this process, over real sockets.

#[path = "it/clients.rs"]
mod clients;
#[path = "it/proxy.rs"]
mod proxy;
#[path = "it/quick.rs"]
mod quick;
#[path = "it/support.rs"]
mod support;
