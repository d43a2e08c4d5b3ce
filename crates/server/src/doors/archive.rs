//! A folder as one ZIP file ([`content::archive`]), while it is read. *Invariants*: what is in it was there when it began; memory does not grow
//! with the files, and what the list of them takes is reserved before it is made, whether the archive is sent or only described.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use content::ContentError;
use content::archive::{ArchiveWriting, Layout, Member, Piece};
use futures_util::stream::try_unfold;
use model::{Content, NodeId, RelativePath};
use tokio::sync::OwnedSemaphorePermit;

use super::public::attachment;
use crate::app::Share;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::files::{FileReader, READER_MEMORY, Recipient, ViewGuard};
use crate::services::files::{FileNode, View};

/// A folder that somebody wants as an archive.
pub(super) trait ArchiveRequest: Sync {
    /// Returns to whom it goes.
    fn recipient(&self) -> Recipient;

    /// Returns what it is called where it is refused.
    fn path(&self) -> &RelativePath;

    /// Looks the folder up.
    fn find(&self) -> impl Future<Output = Result<(ViewGuard, FileNode)>> + Send;
}

/// A folder as it is to be sent.
pub(super) struct Archive {
    layout: Layout,
    name: String,
    recipient: Recipient,
    /// For the layout.
    memory: OwnedSemaphorePermit,
}

impl Archive {
    /// Lays out a folder with everything in it. That takes memory, for which it waits while it holds no view, so the folder is looked up
    /// twice; what is put into it in between is little, and is not counted.
    ///
    /// # Errors
    /// Those of [`ArchiveRequest::find`]; as [`FileNode::check_is_shown`]; [`ServerError::Invalid`] for too much; [`ServerError::Unavailable`].
    pub(super) async fn of(request: &impl ArchiveRequest) -> Result<Self> {
        let recipient = request.recipient();
        let weight = look(request, weight_of).await?;
        // With what its first reader takes: who holds all there is would wait for that in vain.
        let memory = recipient.share().memory_for_body(weight + READER_MEMORY).await?;
        let lay_out = |view: &View, node: &FileNode| Ok((layout_of(view, node)?, name_of(node)));
        let (layout, name) = look(request, lay_out).await?;
        Ok(Self { layout, name, recipient, memory })
    }

    /// Describes it without its bytes.
    pub(super) fn describe(&self) -> Response {
        (headers(&self.layout, &self.name), Body::empty()).into_response()
    }

    /// Sends it; the first byte is read when it is asked for.
    pub(super) fn send(self) -> Response {
        let Self { layout, name, recipient, memory } = self;
        let headers = headers(&layout, &name);
        let sending = Sending {
            recipient,
            writing: ArchiveWriting::new(layout),
            reader: None,
            before: None,
            memory,
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
        (headers, Body::from_stream(pieces)).into_response()
    }
}

/// Looks at all that is in a folder, where nobody else waits and only a few do so at once.
async fn look<T: Send + 'static>(
    request: &impl ArchiveRequest,
    look: impl FnOnce(&View, &FileNode) -> Result<T> + Send + 'static,
) -> Result<T> {
    let turn = request.recipient().share().turn_of_archive().await?;
    let (view, node) = request.find().await?;
    node.check_is_shown(request.path())?;
    let look = move || {
        let seen = look(&view, &node);
        drop((view, turn));
        seen
    };
    blocking::piece(look).await?
}

/// Returns how much memory the layout of a folder takes.
fn weight_of(view: &View, top: &FileNode) -> Result<u64> {
    let members = match &top.record {
        Some(record) => vec![(top.id, record)],
        None => view.records_in(top.id),
    };
    Layout::weigh(members, |folder| view.records_in(*folder)).map_err(too_much)
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
    Layout::of(members, |folder| list(*folder)).map_err(too_much)
}

fn too_much(error: ContentError) -> ServerError {
    ServerError::Invalid { what: "folder", reason: error.to_string() }
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

/// Begins to read the first file of an archive, with a part of its memory.
async fn begin(
    recipient: &Recipient,
    memory: &mut OwnedSemaphorePermit,
    content: &Content,
) -> Result<FileReader> {
    let (recipient, range) = (recipient.clone(), 0..content.size);
    match Share::part_of(memory, READER_MEMORY) {
        Some(memory) => FileReader::open_with(memory, recipient, content, range).await,
        None => FileReader::open(recipient, content, range).await,
    }
}

/// An archive on its way out.
struct Sending {
    recipient: Recipient,
    writing: ArchiveWriting,
    /// Who reads the file that is sent now.
    reader: Option<Box<FileReader>>,
    /// Who has read the file before: what it has open serves the next one.
    before: Option<Box<FileReader>>,
    memory: OwnedSemaphorePermit,
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
                        None => begin(&self.recipient, &mut self.memory, content).await?,
                    };
                    self.reader = Some(Box::new(reader));
                }
                Piece::End => return Ok(None),
            }
        }
    }
}
