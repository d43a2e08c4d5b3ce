//! The driver `s3:`: a bucket of Amazon S3, or of a server that speaks its protocol, over OpenDAL.
//!
//! An object is created only where none is by `If-None-Match: *`, which S3 has honoured since August 2024; a server
//! that ignores it is found out by the probe. S3 lists in the order of the bytes, and shows what was just written.
//!
//! Requests are signed for others, too, under the address `public`, where they know the store by another one.

use opendal::{HttpTransporter, OperationContext, Operator, services};
use opendal_http_transport_reqwest::ReqwestTransport;
use url::Url;

use crate::credentials::{ACCESS_KEY, CERTIFICATE_FILE, Credentials, SECRET_KEY, SESSION_TOKEN};
use crate::error::{Result, StorageError};
use crate::open::address::Address;
use crate::open::http;
use crate::opendal_store::OpendalStore;

/// What Amazon calls its oldest region, and what other servers call theirs.
const DEFAULT_REGION: &str = "us-east-1";

/// What stands in the place of a public address where nobody else reaches the store.
const NOBODY: &str = "none";

/// Opens a bucket; the server is reached at the first call.
pub(crate) fn open(address: &Address, credentials: &Credentials) -> Result<OpendalStore> {
    credentials.allow_only("s3", &[ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, CERTIFICATE_FILE])?;
    address.allow_only(&["endpoint", "public", "region", "virtual_host"])?;
    let endpoint = address.server("endpoint")?;
    let mut description = format!("S3 bucket {}", address.host);
    if let Some(endpoint) = &endpoint {
        description = format!("{description} at {}", endpoint.origin().ascii_serialization());
    }
    let operator = operator_at(address, credentials, endpoint.as_ref(), &description)?;
    let signer = match address.option("public") {
        Some(NOBODY) => None,
        Some(_) => {
            let public = address.server("public")?;
            Some(operator_at(address, credentials, public.as_ref(), &description)?)
        }
        None => Some(operator.clone()),
    };
    Ok(OpendalStore::new(operator, description).with_signer(signer))
}

/// Makes what speaks to the bucket, or signs what others say to it, by the address of one endpoint.
fn operator_at(
    address: &Address,
    credentials: &Credentials,
    endpoint: Option<&Url>,
    description: &str,
) -> Result<Operator> {
    // What the environment or a file of Amazon's own tools says would not be what the user gave us.
    let mut builder = services::S3::default()
        .bucket(&address.host)
        .root(&format!("/{}/", address.path()))
        .region(address.option("region").unwrap_or(DEFAULT_REGION))
        .disable_config_load()
        .disable_ec2_metadata()
        .access_key_id(credentials.required(ACCESS_KEY, "s3")?)
        .secret_access_key(credentials.required(SECRET_KEY, "s3")?);
    if let Some(token) = credentials.get(SESSION_TOKEN) {
        builder = builder.session_token(token);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.endpoint(endpoint.as_str().trim_end_matches('/'));
    }
    if address.option("virtual_host") == Some("true") {
        builder = builder.enable_virtual_host_style();
    }
    let operator = Operator::new(builder).map_err(|error| StorageError::Failed {
        store: description.to_owned(),
        operation: "set up the driver".to_owned(),
        source: Box::new(error),
    })?;
    let client = http::client(credentials.get(CERTIFICATE_FILE))?;
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    Ok(operator.with_context(OperationContext::new().with_http_transport(transport)))
}
