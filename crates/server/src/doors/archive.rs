//! A folder as one ZIP file (APPNOTE 6.3.10), while it is read: files are stored as they are, one after the other, so that its length is known
//! before its first byte, and memory does not grow with the files.
//!
//! *Invariants*: what is in it was there when it began; a file is followed by its checksum, which is known only then; lengths and offsets
//! that do not fit into 32 bits are written with 64 (ZIP64), and only those. A name never leads out of where it is unpacked.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::try_unfold;
use model::{RelativePath, WorkspaceId};
use tokio::sync::OwnedSemaphorePermit;

use super::public::attachment;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::files::FileReader;
use crate::services::files::{FileNode, View};

mod layout;

use layout::Layout;

/// How many lines of the directory at the end are sent at once.
const LINES_AT_ONCE: usize = 512;

/// A folder as it is to be sent.
pub(super) struct Archive {
    layout: Layout,
    name: String,
}

impl Archive {
    /// Lays out a folder with everything in it.
    pub(super) fn of(view: &View, node: &FileNode, path: &RelativePath) -> Result<Self> {
        if !node.is_directory() {
            let what = format!("'{path}'");
            return Err(ServerError::Conflict { what, reason: "is not a folder" });
        }
        Ok(Self { layout: Layout::of(view, node)?, name: name_of(node) })
    }

    /// Describes it without its bytes.
    pub(super) fn describe(&self) -> Response {
        (headers(&self.layout, &self.name), Body::empty()).into_response()
    }

    /// Sends it to who may read it as `caller`; the first byte is read when it is asked for.
    pub(super) async fn send(
        self,
        (app, caller, workspace): (Arc<App>, Caller, WorkspaceId),
    ) -> Result<Response> {
        let Self { layout, name } = self;
        let memory = app.memory_for_body(layout.weight()).await?;
        let headers = headers(&layout, &name);
        let sending = Sending {
            app,
            caller,
            workspace,
            layout,
            step: Step::Header(0),
            before: None,
            _memory: memory,
        };
        let pieces = try_unfold(sending, |mut sending| async move {
            match sending.next().await {
                Ok(piece) => Ok(piece.map(|piece| (piece, sending))),
                Err(error) => {
                    tracing::error!(%error, "an archive that is being sent cannot be read to its end");
                    Err(std::io::Error::other(error))
                }
            }
        });
        Ok((headers, Body::from_stream(pieces)).into_response())
    }
}

fn name_of(node: &FileNode) -> String {
    let name = node.record.as_ref().map(|record| String::from_utf8_lossy(record.name.as_bytes()));
    format!("{}.zip", name.as_deref().unwrap_or("files"))
}

fn headers(layout: &Layout, name: &str) -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_LENGTH, layout.length().into()),
        (CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (CONTENT_DISPOSITION, attachment(name)),
    ])
}

/// An archive on its way out.
struct Sending {
    app: Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    layout: Layout,
    step: Step,
    /// Who has read the entry before: what it has open serves the next one.
    before: Option<Box<FileReader>>,
    _memory: OwnedSemaphorePermit,
}

/// What comes next.
enum Step {
    /// The header of an entry.
    Header(usize),
    /// The bytes of an entry, whose checksum is this so far.
    Content(usize, Box<FileReader>, crc32fast::Hasher),
    /// Lines of the directory from an entry on.
    Directory(usize),
    End,
}

impl Sending {
    /// Returns the next piece; nothing at the end.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let count = self.layout.entries().len();
        loop {
            match std::mem::replace(&mut self.step, Step::End) {
                Step::Header(index) if index < count => {
                    self.step = self.begin(index).await?;
                    return Ok(Some(self.layout.header(index).into()));
                }
                Step::Header(_) => self.step = Step::Directory(0),
                Step::Content(index, mut reader, mut checksum) => {
                    let Some(piece) = reader.next().await? else {
                        self.step = Step::Header(index + 1);
                        self.before = Some(reader);
                        return Ok(Some(self.layout.finish(index, checksum.finalize()).into()));
                    };
                    checksum.update(&piece);
                    self.step = Step::Content(index, reader, checksum);
                    return Ok(Some(piece));
                }
                Step::Directory(index) if index < count => {
                    let end = count.min(index + LINES_AT_ONCE);
                    self.step = Step::Directory(end);
                    return Ok(Some(self.layout.directory(index..end).into()));
                }
                Step::Directory(_) => return Ok(Some(self.layout.end().into())),
                Step::End => return Ok(None),
            }
        }
    }

    async fn begin(&mut self, index: usize) -> Result<Step> {
        let Some(content) = self.layout.entries().get(index).and_then(|entry| entry.content())
        else {
            return Ok(Step::Header(index + 1));
        };
        let reader = match self.before.take() {
            Some(before) => before.follow(content).await?,
            None => {
                let (app, range) = (Arc::clone(&self.app), 0..content.size);
                FileReader::open(app, self.caller, self.workspace, content, range).await?
            }
        };
        Ok(Step::Content(index, Box::new(reader), crc32fast::Hasher::new()))
    }
}
