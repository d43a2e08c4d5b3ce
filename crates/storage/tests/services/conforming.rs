//! The conformance suite over every driver.

use std::sync::Arc;

use storage::conformance;
use storage::layers::Retrying;

use crate::breaking::NoWaiting;
use crate::place::{server, started};

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

/// Tried again as the program does: once in several hundred calls vsftpd with TLS gave no answer within a minute, and why was
/// not found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ftp_with_tls_on_vsftpd_keeps_objects() {
    let mut server = server("vsftpd");
    server.url = server.url.replace("ftp://127.0.0.1:", "ftps://localhost:");
    let wanted = [
        "a_put_object_is_read_back",
        "any_bytes_are_kept",
        "put_if_absent_leaves_the_first_object_untouched",
        "ranges_are_cut_at_the_end",
        "a_list_is_in_byte_order_of_whole_keys",
    ];
    let mut cases = conformance::cases();
    cases.retain(|case| wanted.contains(&case.name));
    assert_eq!(cases.len(), wanted.len());
    let retrying = || Retrying::new(server.fresh(), Arc::new(NoWaiting));
    conformance::run_cases(&cases, || Arc::new(retrying())).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gcs_on_fake_gcs_server_conforms() {
    for name in started(&["fake-gcs"]) {
        conforms(name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn azblob_on_azurite_conforms() {
    conforms("azurite").await;
}
