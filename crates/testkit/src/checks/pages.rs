//! Checkpoints and their pages: the newest is whole after a cleanup, says what the log says, and old ones are gone.

use std::collections::BTreeSet;
use std::rc::Rc;

use commit_log::CommitLog;
use content::WorkspaceKeys;
use model::checkpoint::{Checkpoint, Page, PageWalk, decode_entry, decode_pack_entry};
use model::codec::decode_message;
use model::fold::fold;
use model::{Entry, NodeId, PageId, Tree, TreeNode};
use storage::object_store::list_all;
use storage::{ContentStore, ObjectKey, ObjectStore};

use super::ALL;
use crate::coverage::Fault;
use crate::world::World;

/// I-27: after a cleanup that has come to its end the newest checkpoint is whole and says what the log says, and no page is stored
/// that neither it nor the one before it has.
pub async fn check_pages(world: Rc<World>) {
    let auditor = world.auditor().clone();
    let (log, store) = (auditor.log(), auditor.store());
    if let Err(text) = check(&world, &*log, store).await {
        world.violation(format!("I-27: {text}"));
    }
}

async fn check(
    world: &World,
    log: &dyn CommitLog,
    store: std::sync::Arc<dyn ObjectStore>,
) -> Result<(), String> {
    // It is not for devices to say which pages a server removes.
    let last = log.last_checkpoints().await.map_err(|error| error.to_string())?;
    let Some(last) = last.filter(|last| !last.is_empty()) else { return Ok(()) };
    let entries = log.entries(0, ALL).await.map_err(|error| error.to_string())?;
    let content = ContentStore::new(store.clone());
    let needed = last_pages(log, &content, &world.common.keys(), &entries).await?;
    let listed = list_all(&*store, ObjectKey::PAGES).await.map_err(|error| error.to_string())?;
    for page in listed.iter().filter_map(|entry| entry.key.as_page()) {
        if !needed.contains(&page) {
            return Err(format!("page {page} is stored, and no checkpoint needs it"));
        }
    }
    if last.len() > 1 {
        world.common.coverage.hit(Fault::PagesCleanedUp);
    }
    Ok(())
}

/// Reads the newest checkpoint whole, compares it with the log, and returns its pages and those of the one before it.
///
/// # Errors
/// A text that says what is missing, or differs.
pub(crate) async fn last_pages(
    log: &dyn CommitLog,
    store: &ContentStore,
    keys: &WorkspaceKeys,
    entries: &[Entry],
) -> Result<BTreeSet<PageId>, String> {
    let last = log.last_checkpoints().await.map_err(|error| error.to_string())?;
    let mut pages = BTreeSet::new();
    for (number, checkpoint) in last.unwrap_or_default().iter().enumerate() {
        if number > 0 {
            add_what_is_there(checkpoint, store, keys, &mut pages).await;
            continue;
        }
        let seq = checkpoint.head.seq;
        let nodes = read_whole(checkpoint, store, keys, &mut pages)
            .await
            .map_err(|text| format!("the checkpoint of entry {seq}: {text}"))?;
        compare(checkpoint, &nodes, keys, entries)?;
    }
    Ok(pages)
}

/// Adds the pages of an older checkpoint. A store may have lost some of them, and what is there of the others may stay.
async fn add_what_is_there(
    checkpoint: &Checkpoint,
    store: &ContentStore,
    keys: &WorkspaceKeys,
    pages: &mut BTreeSet<PageId>,
) {
    let mut wanted = vec![checkpoint.nodes, checkpoint.packs];
    while let Some(id) = wanted.pop() {
        pages.insert(id);
        let Ok(bytes) = store.read_page(id).await else { continue };
        let Ok(plain) = keys.open_page(&bytes) else { continue };
        let Ok(page) = decode_message::<Page>(&plain) else { continue };
        if page.level() > 0 {
            wanted.extend(page.children());
        }
    }
}

/// The nodes of a checkpoint.
type Nodes = Vec<(NodeId, TreeNode)>;

async fn read_whole(
    checkpoint: &Checkpoint,
    store: &ContentStore,
    keys: &WorkspaceKeys,
    pages: &mut BTreeSet<PageId>,
) -> Result<Nodes, String> {
    let mut nodes = Nodes::new();
    for (top, has_nodes) in [(checkpoint.nodes, true), (checkpoint.packs, false)] {
        let mut walk = PageWalk::new(top);
        while let Some(id) = walk.wanted() {
            pages.insert(id);
            let bytes = store.read_page(id).await.map_err(|error| error.to_string())?;
            let plain = keys.open_page(&bytes).map_err(|error| error.to_string())?;
            for (key, value) in walk.take(&plain).map_err(|error| error.to_string())? {
                let read = match has_nodes {
                    true => decode_entry(&key, &value).map(|node| nodes.push(node)),
                    false => decode_pack_entry(&key, &value).map(drop),
                };
                read.map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(nodes)
}

/// Compares a checkpoint with the log up to its entry.
fn compare(
    checkpoint: &Checkpoint,
    nodes: &Nodes,
    keys: &WorkspaceKeys,
    entries: &[Entry],
) -> Result<(), String> {
    let seq = checkpoint.head.seq;
    let mut tree = Tree::default();
    for entry in entries.iter().take_while(|entry| entry.seq <= seq) {
        let Ok(_) = fold(&mut tree, entry, keys);
    }
    let is_of_log = entries.iter().any(|entry| entry.head() == checkpoint.head);
    if !is_of_log {
        return Err(format!("the checkpoint of entry {seq} is not of this log"));
    }
    let differs = nodes.iter().find(|(id, node)| tree.get(id) != Some(node));
    match differs {
        None if nodes.len() == tree.nodes().count() => Ok(()),
        None => Err(format!("the checkpoint of entry {seq} lacks nodes")),
        Some((id, _)) => Err(format!("node {id} in the checkpoint of entry {seq} is another")),
    }
}
