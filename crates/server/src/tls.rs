//! What all TLS of this server rests on.

use tokio_rustls::rustls::crypto::ring::default_provider;

/// Lets TLS use ring. Something may be installed already, and is then the right one: the program has only this.
pub(crate) fn use_ring() {
    let _already_installed = default_provider().install_default();
}
