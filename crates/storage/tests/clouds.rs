//! The drivers of services that people sign in to, against servers that follow the published interfaces of those services.
//!
//! The servers are ours (`clouds/server.rs`), so they prove what we read in the documents and not what the services do. They
//! check every request, and one that the documents do not have is noted as a violation, which fails the test.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the files of sign-ins behind the back of the store"
)]

#[path = "clouds/baidu.rs"]
mod baidu;
#[path = "clouds/box_service.rs"]
mod box_service;
#[path = "clouds/conforming.rs"]
mod conforming;
#[path = "clouds/disk.rs"]
mod disk;
#[path = "clouds/dropbox.rs"]
mod dropbox;
#[path = "clouds/google_drive.rs"]
mod google_drive;
#[path = "clouds/onedrive.rs"]
mod onedrive;
#[path = "clouds/server.rs"]
mod server;
#[path = "clouds/signing_in.rs"]
mod signing_in;
#[path = "clouds/tls.rs"]
mod tls;
#[path = "clouds/twins.rs"]
mod twins;
#[path = "clouds/waiting.rs"]
mod waiting;
