//! A folder as one ZIP file ([`content::archive`]), while it is read. *Invariants*: what is in it was there when it began; memory does not grow
//! with the files.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use content::archive::{ArchiveWriting, Layout, Member, Piece};
use futures_util::stream::try_unfold;
use model::{NodeId, RelativePath};
use tokio::sync::OwnedSemaphorePermit;

use super::public::attachment;
use crate::error::{Result, ServerError};
use crate::files::{FileReader, Recipient};
use crate::services::files::{FileNode, View};

/// A folder as it is to be sent.
pub(super) struct Archive {
    layout: Layout,
    name: String,
}

impl Archive {
    /// Lays out a folder with everything in it.
    pub(super) fn of(view: &View, node: &FileNode, path: &RelativePath) -> Result<Self> {
        node.check_is_shown(path)?;
        Ok(Self { layout: layout_of(view, node)?, name: name_of(node) })
    }

    /// Describes it without its bytes.
    pub(super) fn describe(&self) -> Response {
        (headers(&self.layout, &self.name), Body::empty()).into_response()
    }

    /// Sends it; the first byte is read when it is asked for.
    pub(super) async fn send(self, recipient: Recipient) -> Result<Response> {
        let Self { layout, name } = self;
        let memory = recipient.memory_for_body(layout.weight()).await?;
        let headers = headers(&layout, &name);
        let sending = Sending {
            recipient,
            writing: ArchiveWriting::new(layout),
            reader: None,
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

/// Lays out a folder with everything in it but symbolic links.
fn layout_of(view: &View, top: &FileNode) -> Result<Layout> {
    let member = |node: FileNode| Some(Member { key: node.id, record: node.record? });
    let list = |folder: NodeId| -> Vec<_> {
        view.list(folder, None, usize::MAX).into_iter().filter_map(member).collect()
    };
    let members = match &top.record {
        Some(_) => member(top.clone()).into_iter().collect(),
        None => list(top.id),
    };
    Layout::of(members, |folder| list(*folder))
        .map_err(|error| ServerError::Invalid { what: "folder", reason: error.to_string() })
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
    recipient: Recipient,
    writing: ArchiveWriting,
    /// Who reads the file that is sent now.
    reader: Option<Box<FileReader>>,
    /// Who has read the file before: what it has open serves the next one.
    before: Option<Box<FileReader>>,
    _memory: OwnedSemaphorePermit,
}

impl Sending {
    /// Returns the next piece; nothing at the end.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(mut reader) = self.reader.take() {
                let Some(piece) = reader.next().await? else {
                    self.before = Some(reader);
                    return Ok(Some(self.writing.finish().into()));
                };
                self.writing.pass(&piece);
                self.reader = Some(reader);
                return Ok(Some(piece));
            }
            match self.writing.next_piece() {
                Piece::Bytes(bytes) => return Ok(Some(bytes.into())),
                Piece::Content(content) => {
                    let reader = match self.before.take() {
                        Some(before) => before.follow(content).await?,
                        None => {
                            let recipient = self.recipient.clone();
                            FileReader::open(recipient, content, 0..content.size).await?
                        }
                    };
                    self.reader = Some(Box::new(reader));
                }
                Piece::End => return Ok(None),
            }
        }
    }
}
