//! The conformance suite over every driver.

use storage::conformance;

use crate::place::server;

async fn conforms(name: &str) {
    let server = server(name);
    conformance::run(|| server.fresh()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sftp_on_openssh_conforms() {
    conforms("openssh").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ftp_on_vsftpd_conforms() {
    conforms("vsftpd").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smb_on_samba_conforms() {
    conforms("samba").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webdav_on_apache_conforms() {
    conforms("apache").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_on_moto_conforms() {
    conforms("moto").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imap_on_dovecot_conforms() {
    conforms("dovecot").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swift_conforms_as_a_store_of_data() {
    let server = server("swift");
    conformance::run_cases(&conformance::data_cases(), || server.fresh()).await;
}
