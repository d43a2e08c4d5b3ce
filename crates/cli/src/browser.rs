//! A browser of a person: it is sent somewhere, and comes back to this computer with an answer.
//!
//! *Goals*: whoever connects and says nothing holds nobody up. *Invariants*: only this computer is listened to, and no longer than somebody
//! waits; a request is bounded in length and time, and so is how many are read at once. Where a browser is sent stands in no argument of a
//! program: others who use this computer read those, and what is in the address lets in who brings it back.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::environment::random_bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use url::Url;

use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::system;

/// How long a person has for the browser.
pub(crate) const VISIT_MAX: Duration = Duration::from_secs(900);

/// How long a browser has for one request, and how much it may say.
const REQUEST_MAX: Duration = Duration::from_secs(10);
const REQUEST_SIZE_MAX: usize = 16 << 10;

/// How many requests are read at once.
const REQUESTS_AT_ONCE: usize = 16;

/// A browser that asks for something.
pub(crate) struct Visitor {
    /// What it asks for: path and query.
    pub(crate) target: String,
    stream: TcpStream,
}

/// Listens on this computer alone; port 0 picks a free one.
///
/// # Errors
/// [`Code::Usage`] where the port is taken.
pub(crate) async fn listen(port: u16) -> Result<(TcpListener, u16)> {
    let bound = TcpListener::bind(("127.0.0.1", port)).await;
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
    let (port, listener) = bound.map_err(|error| {
        CommandError::usage(format!("port {port} of this device cannot be used"))
            .cause(error)
            .help("--port PORT", "another one; register it with the service, too")
    })?;
    Ok((listener, port))
}

/// Browsers that come, for as long as somebody waits for them.
pub(crate) struct Visitors {
    visitors: mpsc::Receiver<Visitor>,
    listening: JoinHandle<()>,
}

impl Visitors {
    /// Lets them in.
    pub(crate) fn listen(listener: TcpListener) -> Self {
        let (sender, visitors) = mpsc::channel(1);
        Self { visitors, listening: tokio::spawn(let_in(listener, sender)) }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Option<Visitor> {
        self.visitors.recv().await
    }

    /// Lets nobody in any more; the port is free then.
    pub(crate) async fn end(mut self) {
        self.listening.abort();
        let _aborted = (&mut self.listening).await;
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn let_in(listener: TcpListener, sender: mpsc::Sender<Visitor>) {
    let turns = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let sender = sender.clone();
        tokio::spawn(async move {
            if let Ok(Some(visitor)) = tokio::time::timeout(REQUEST_MAX, read(stream)).await {
                // Nobody waits any more: what is not answered is closed.
                let _ = sender.send(visitor).await;
            }
            drop(turn);
        });
    }
}

/// Reads what a browser asks for; nothing where it asks for nothing that is read.
async fn read(mut stream: TcpStream) -> Option<Visitor> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut part).await.ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&part[..length]);
        if head.len() > REQUEST_SIZE_MAX {
            return None;
        }
    }
    let text = String::from_utf8(head).ok()?;
    let target = text.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    Some(Visitor { target, stream })
}

impl Visitor {
    /// Says something in the browser; if it is gone, nobody misses it.
    pub(crate) async fn answer(self, status: &str, text: &str) {
        self.reply(status, "", &page(text)).await;
    }

    /// Sends the browser on to an address.
    pub(crate) async fn send_on(self, url: &Url) {
        self.reply("302 Found", &format!("location: {url}\r\n"), "").await;
    }

    async fn reply(mut self, status: &str, header: &str, page: &str) {
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n{header}\
             content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
             referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        if self.stream.write_all(answer.as_bytes()).await.is_ok() {
            let _already_gone = self.stream.shutdown().await;
        }
    }
}

/// A page with one line, which is ours: nothing of what the browser brought is in it.
fn page(text: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Syncline</title>\
         <style>body{{font:1.2em system-ui,sans-serif;max-width:32em;margin:20vh auto;padding:0 1em;\
         color-scheme:light dark}}</style><h1>Syncline</h1><p>{text}</p></html>\n"
    )
}

/// A file that leads the browser of whoever sits here to an address. Nobody else can read it, and it goes with this value.
pub(crate) struct Lead(PathBuf);

impl Drop for Lead {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = system::remove_file(&self.0);
    }
}

/// Opens a browser that comes to `url`, if somebody sits here. Whether it worked, the person sees; where it should go, they were told, too.
pub(crate) fn open(context: &Context<'_>, url: &Url) -> Option<Lead> {
    let variable = |name| context.variables.get(name).is_some();
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if variable("DISPLAY") || variable("WAYLAND_DISPLAY") => "xdg-open",
        false => return None,
    };
    if context.flags.no_input || variable("CI") {
        return None;
    }
    // Browsers that are shut in (snap, flatpak) read files of a person's folder, but no hidden ones.
    let name = URL_SAFE_NO_PAD.encode(random_bytes::<9>(&*context.random));
    let path = context.variables.path("HOME")?.join(format!("syncline-sign-in-{name}.html"));
    system::write_private(&path, &leading_page(url)).ok()?;
    let lead = Lead(path);
    let mut command = Command::new(program);
    command.arg(&lead.0).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
    Some(lead)
}

/// A page that leads to an address, in which nothing can end an attribute of HTML.
fn leading_page(url: &Url) -> String {
    let address = url.as_str().replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>Syncline</title></html>\n"
    )
}

/// Nobody came back.
pub(crate) fn too_late() -> CommandError {
    CommandError::new(Code::Refused, "nobody came back from the browser in time")
        .state("nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_leads_on_stays_in_its_attribute() {
        let url = Url::parse("https://id.example.org/a?x=1&y=\"><script>").unwrap();
        let page = leading_page(&url);
        assert!(page.contains("content=\"0;url=https://id.example.org/a?x=1&amp;y="), "{page}");
        assert!(!page.contains("<script>"), "{page}");
    }

    #[tokio::test]
    async fn port_is_free_as_soon_as_nobody_waits() {
        let (listener, port) = listen(0).await.unwrap();
        let mut visitors = Visitors::listen(listener);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(b"GET /x?y HTTP/1.1\r\n\r\n").await.unwrap();
        let visitor = visitors.next().await.unwrap();
        assert_eq!(visitor.target, "/x?y");
        visitor.send_on(&Url::parse("https://id.example.org/auth?a=b").unwrap()).await;
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(said.contains("\r\nlocation: https://id.example.org/auth?a=b\r\n"), "{said}");
        visitors.end().await;
        assert!(listen(port).await.is_ok());
    }
}
