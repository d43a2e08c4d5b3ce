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
async fn ftp_with_tls_on_vsftpd_conforms() {
    let mut server = server("vsftpd");
    server.url = server.url.replace("ftp://127.0.0.1:", "ftps://localhost:");
    // Three hundred objects take long with a handshake each, and show no more than ten.
    let mut cases = conformance::cases();
    cases.retain(|case| case.name != "deferred_objects_are_there_after_sync");
    conformance::run_cases(&cases, || server.fresh()).await;
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
