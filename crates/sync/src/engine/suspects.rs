//! Files that lost their data in a power cut: known by a size that changed while the times did not. They are never sent;
//! their last version is written again, and what is left of them goes to the trash.

use std::time::Duration;

use model::NodeId;
use model::codec::Decoder;

use super::Engine;
use super::download::Target;
use crate::error::Result;
use crate::plan::Trees;
use crate::scan::{LocalChanges, Problem, ProblemKind};

/// The fact that names the suspects that make way for their good versions.
const SUSPECTS: &str = "suspects";

/// How long a file must look suspect to be so; a program that cuts it off may be held up by a busy machine.
const SUSPECT_WAIT: Duration = Duration::from_millis(200);

impl Engine {
    /// Lets only those be suspect that stay so: while a program cuts a file off, its size changes before its times do.
    pub(super) async fn confirm_suspects(&mut self, changes: &mut LocalChanges) -> Result<()> {
        if changes.suspects.is_empty() {
            return Ok(());
        }
        self.environment.clock.sleep(SUSPECT_WAIT).await;
        for (node, mut found) in std::mem::take(&mut changes.suspects) {
            let stat = self.environment.file_system.stat(&found.path)?;
            if stat == Some(found.stat) {
                let (path, kind) = (found.path.clone(), ProblemKind::Suspect);
                changes.problems.push(Problem { path, name: None, kind });
                changes.suspects.insert(node, found);
            } else {
                // What has another file now, or none, turns out to be changing when it is read.
                let same = stat.filter(|stat| stat.is_same_file(&found.stat));
                found.stat = same.unwrap_or(found.stat);
                changes.present.insert(node, found);
            }
        }
        Ok(())
    }

    /// Notes which suspects are about to go to the trash, each before its good version comes.
    pub(super) fn note_suspects(&mut self, targets: &[Target]) -> Result<()> {
        let suspects = targets.iter().filter(|target| target.is_suspect);
        let nodes: Vec<u8> = suspects.flat_map(|target| *target.node.as_bytes()).collect();
        if nodes.is_empty() { Ok(()) } else { self.state.set_fact(SUSPECTS, &nodes) }
    }

    /// Forgets the rows of suspects that went to the trash without a good version in their place: they must not look
    /// deleted by a user.
    pub(super) fn forget_trashed_suspects(&mut self) -> Result<()> {
        let Some(nodes) = self.state.fact(SUSPECTS)? else { return Ok(()) };
        let mut decoder = Decoder::new(&nodes);
        while decoder.remaining() > 0 {
            let node = NodeId::from_bytes(decoder.array()?);
            let Some(place) = self.trees().local(&node)?.map(|local| local.place) else { continue };
            if self.found_at(&place)?.is_none() {
                self.state.remove_synced(&node)?;
                self.state.add_unsynced(&node)?;
                self.overlay.forget(&node);
            }
        }
        self.state.forget_fact(SUSPECTS)
    }
}

#[cfg(test)]
mod tests;
