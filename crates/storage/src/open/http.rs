//! What the drivers over HTTP have in common.

use std::time::Duration;

use reqwest::{Certificate, Client};

use crate::credentials::invalid;
use crate::error::Result;

/// Makes a client: no redirects, and limits for connecting and for silence. It trusts what the system trusts, or only
/// the authority in the file `certificate_file`.
pub(crate) fn client(certificate_file: Option<&str>) -> Result<Client> {
    client_with_silence(certificate_file, Duration::from_secs(60))
}

/// As [`client`], for servers that may say nothing for so long.
pub(crate) fn client_with_silence(
    certificate_file: Option<&str>,
    silence: Duration,
) -> Result<Client> {
    // One may be installed already, and is then the right one: the program has only this.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(silence);
    if let Some(path) = certificate_file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(format!("the file {path} cannot be read: {error}")))?;
        let certificate = Certificate::from_pem(text.as_bytes())
            .map_err(|error| invalid(format!("the file {path} cannot be read: {error}")))?;
        builder = builder.tls_certs_only([certificate]);
    }
    builder.build().map_err(|error| invalid(format!("TLS cannot be used: {error}")))
}
