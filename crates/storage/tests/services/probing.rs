//! What the probe says of every server, in words.

use storage::object_store::list_all;
use storage::probe::{ProbeOptions, ProbeReport, probe};

use crate::place::{server, started};

#[expect(clippy::print_stdout, reason = "the guide to the stores quotes these words")]
async fn probed(name: &str) -> ProbeReport {
    let store = server(name).fresh();
    let options = ProbeOptions { token: "t0ken".to_owned(), object_size_max: 8 << 20 };
    let report = probe(store.clone(), &options).await.unwrap();
    println!("{}:\n  {}", store.describe(), report.words().join("\n  "));
    assert!(report.lists_after_write && report.lists_in_order && report.deletes, "{report:?}");
    assert!(report.may_hold_data(), "{report:?}");
    assert!(list_all(store.as_ref(), "").await.unwrap().is_empty(), "it is left clean");
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn these_may_hold_data_and_take_part_in_agreement() {
    for name in
        started(&["openssh", "vsftpd", "samba", "apache", "moto", "dovecot", "fake-gcs", "azurite"])
    {
        let report = probed(name).await;
        assert!(report.may_take_part_in_agreement(), "{name}: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swift_may_hold_data_alone() {
    let report = probed("swift").await;
    assert!(!report.may_take_part_in_agreement(), "{report:?}");
}
