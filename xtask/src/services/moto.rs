//! moto: a server that speaks the protocol of S3, from PyPI.

use std::path::PathBuf;
use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::Result;
use crate::{install, process};

/// The name of the service.
pub(super) const NAME: &str = "moto";

const RELEASE: &str = "5.2.5";

/// One request at a time: what looks whether an object is there and writes it is one step, as it is at S3.
const PROGRAM: &str = "\
import sys
import boto3
import moto
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

port = int(sys.argv[1])
server = make_server('127.0.0.1', port, DomainDispatcherApplication(create_backend_app))
server.serve_forever()
";

const BUCKET: &str = "\
import sys
import boto3

client = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1',
    aws_access_key_id='ada', aws_secret_access_key='loopback-only')
client.create_bucket(Bucket='cloud')
";

pub(super) fn start(place: &Place) -> Result<Service> {
    let python = python()?;
    let program = place.write("server.py", PROGRAM)?;
    let port = free_port()?;
    let mut command = Command::new(&python);
    command.arg(&program).arg(port.to_string());
    let process = place.serve(NAME, &command, port)?;
    let endpoint = format!("http://127.0.0.1:{port}");
    let bucket = place.write("bucket.py", BUCKET)?;
    process::output(Command::new(&python).arg(bucket).arg(&endpoint))?;
    Ok(Service {
        name: NAME.to_owned(),
        version: format!("moto {RELEASE}"),
        url: format!("s3:cloud/store?endpoint={endpoint}"),
        credentials: vec![
            ("access_key".to_owned(), "ada".to_owned()),
            ("secret_key".to_owned(), "loopback-only".to_owned()),
        ],
        processes: vec![process],
    })
}

/// Installs moto where it is missing.
pub(super) fn install() -> Result<()> {
    python().map(drop)
}

/// The Python that has moto.
fn python() -> Result<PathBuf> {
    install::python_with(NAME, RELEASE, "moto[s3,server]", "moto.server, boto3")
}
