//! TLS for the protocols that bring none of their own.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt;
use tokio_rustls::TlsConnector;

use crate::credentials::invalid;
use crate::error::Result;

/// Trusts what the system trusts, or only the authorities in the file `certificate_file`.
pub(crate) fn connector(certificate_file: Option<&str>) -> Result<TlsConnector> {
    let unusable = |error: rustls::Error| invalid(format!("TLS cannot be used: {error}"));
    // One may be installed already, and is then the right one: the program has only this.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let Some(path) = certificate_file else {
        let config = ClientConfig::with_platform_verifier().map_err(unusable)?;
        return Ok(TlsConnector::from(Arc::new(config)));
    };
    let unreadable =
        |error: &dyn std::fmt::Display| invalid(format!("the file {path} cannot be read: {error}"));
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        trusted.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if trusted.is_empty() {
        return Err(invalid(format!("the file {path} holds no certificate")));
    }
    let config = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
