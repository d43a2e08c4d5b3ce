//! The transport inside one program.

use std::sync::Arc;

use async_trait::async_trait;
use messaging::conformance::{self, Fixture, WAITING_MAX};
use messaging::{InProcessTransport, Transport};

struct InProcess(InProcessTransport);

#[async_trait]
impl Fixture for InProcess {
    async fn client(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.clone())
    }

    async fn server(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.clone())
    }
}

fn fixture() -> InProcess {
    InProcess(InProcessTransport::with_waiting_max(WAITING_MAX))
}

#[tokio::test]
async fn the_transport_inside_a_program_conforms_on_one_thread() {
    conformance::run_all(&fixture()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_transport_inside_a_program_conforms_on_several_threads() {
    conformance::run_all(&fixture()).await;
}
