//! Who may do what with a workspace: one pure function that every service asks.
//!
//! *Invariants*: who is neither owner nor member learns nothing, not even that the workspace is there. Whatever a member
//! does, the history stays: to clean up, which removes it, is for the owner. `docs/design/authorisation.md` has the
//! same as a table, call by call, and a test plays that table.

use model::{Commit, WorkspaceId};

use crate::error::{Result, ServerError};
use crate::metadata::{MemberRole, Scope, TokenLimits};

/// What an account is in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is theirs.
    Owner,
    /// The owner has let them in.
    Member(MemberRole),
}

/// What a call does with a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Learn what is in it.
    Read,
    /// Add to its history and its objects.
    Write,
    /// Make links for people without an account.
    Publish,
    /// Say who is a member, what is kept, and remove what is not; say by a checkpoint what the history comes to, which whoever begins
    /// there believes.
    Manage,
    /// Give up one's own membership.
    Leave,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Allowed,
    /// It is refused, to somebody who knows the workspace.
    Refused,
    /// It is answered as if there were no such workspace.
    Hidden,
}

/// Who makes a call, as far as the workspace of the call is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// What the account is in the workspace; nothing for a stranger.
    pub role: Option<Role>,
    /// What it may do at most, where an application shows its token.
    pub scope: Option<Scope>,
}

impl Standing {
    /// Returns the standing of somebody who is `role` in a workspace, and shows a token with these limits or a device's own.
    pub fn new(role: Option<Role>, workspace: WorkspaceId, limits: Option<&TokenLimits>) -> Self {
        let of_another = |limits: &TokenLimits| limits.workspace.is_some_and(|id| id != workspace);
        let role = role.filter(|_| !limits.is_some_and(of_another));
        Self { role, scope: limits.map(|limits| limits.scope) }
    }
}

/// Says what becomes of a call that needs `right`.
pub fn judge(standing: Standing, right: Right) -> Verdict {
    let is_in_scope = match standing.scope {
        None => true,
        Some(Scope::Write) => matches!(right, Right::Read | Right::Write),
        Some(Scope::Read | Scope::Link) => right == Right::Read,
    };
    let is_allowed = match standing.role {
        None => return Verdict::Hidden,
        Some(Role::Owner) => right != Right::Leave,
        Some(Role::Member(role)) => match right {
            Right::Read | Right::Leave => true,
            Right::Write | Right::Publish => role == MemberRole::Edit,
            Right::Manage => false,
        },
    };
    if is_allowed && is_in_scope { Verdict::Allowed } else { Verdict::Refused }
}

/// Refuses a call that [`judge`] does not allow.
///
/// # Errors
/// [`ServerError::NotFound`] for whom `workspace` is hidden, [`ServerError::Forbidden`] for who may not do this in it.
pub fn require(standing: Standing, right: Right, workspace: impl std::fmt::Display) -> Result<()> {
    match judge(standing, right) {
        Verdict::Allowed => Ok(()),
        Verdict::Hidden => Err(ServerError::NotFound { what: format!("workspace '{workspace}'") }),
        Verdict::Refused if standing.scope.is_some() => {
            Err(ServerError::Forbidden { what: "what this token is not for".to_owned() })
        }
        Verdict::Refused => {
            let what = match right {
                Right::Read => "reading this workspace",
                Right::Write => "changing this workspace, which you may read only,",
                Right::Publish => "making links to this workspace, which you may read only,",
                Right::Manage => "what only the owner of a workspace may do",
                Right::Leave => "leaving a workspace of your own",
            };
            Err(ServerError::Forbidden { what: what.to_owned() })
        }
    }
}

/// Returns the right that a commit needs. What the server can see of it, node ids, tells settings from files.
pub fn right_of(commit: &Commit) -> Right {
    match commit.changes.iter().any(|change| change.node.is_settings()) {
        true => Right::Manage,
        false => Right::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Allowed, Hidden, Refused};

    #[test]
    fn every_role_has_its_rights_and_no_others() {
        let (view, edit) = (Role::Member(MemberRole::View), Role::Member(MemberRole::Edit));
        let rights = [Right::Read, Right::Write, Right::Publish, Right::Manage, Right::Leave];
        let table = [
            (Some(Role::Owner), [Allowed, Allowed, Allowed, Allowed, Refused]),
            (Some(edit), [Allowed, Allowed, Allowed, Refused, Allowed]),
            (Some(view), [Allowed, Refused, Refused, Refused, Allowed]),
            (None, [Hidden; 5]),
        ];
        for (role, verdicts) in table {
            let verdict = |scope| move |right| judge(Standing { role, scope }, right);
            assert_eq!(rights.map(verdict(None)), verdicts, "{role:?}");
            // A token lets less through, and never more.
            let refused = if role.is_none() { Hidden } else { Refused };
            let [read, write, ..] = verdicts;
            let of_write = rights.map(verdict(Some(Scope::Write)));
            assert_eq!(of_write, [read, write, refused, refused, refused], "{role:?}");
            for scope in [Scope::Read, Scope::Link] {
                let of_read = rights.map(verdict(Some(scope)));
                assert_eq!(of_read, [read, refused, refused, refused, refused], "{role:?}");
            }
        }
    }

    #[test]
    fn a_token_of_another_workspace_makes_a_stranger() {
        let (home, work) = (WorkspaceId::from_bytes([1; 16]), WorkspaceId::from_bytes([2; 16]));
        let of = |workspace| TokenLimits { scope: Scope::Write, workspace, expires: None };
        let role = |limits| Standing::new(Some(Role::Owner), home, Some(&limits)).role;
        assert_eq!(role(of(None)), Some(Role::Owner));
        assert_eq!(role(of(Some(home))), Some(Role::Owner));
        assert_eq!(role(of(Some(work))), None);
        assert_eq!(Standing::new(None, home, Some(&of(Some(home)))).role, None);
    }

    #[test]
    fn a_stranger_hears_the_same_of_every_call() {
        let rights = [Right::Read, Right::Write, Right::Publish, Right::Manage, Right::Leave];
        let stranger = Standing { role: None, scope: None };
        let heard = rights.map(|right| require(stranger, right, "w").unwrap_err().to_string());
        assert!(heard.iter().all(|text| text == "there is no workspace 'w'"), "{heard:?}");
    }

    #[test]
    fn what_changes_settings_is_for_who_manages() {
        use model::testing::{commit, put};
        use model::{Action, Change, NodeId};
        assert_eq!(right_of(&commit(1, vec![put(1, 0, "a")])), Right::Write);
        for node in [NodeId::FENCE, NodeId::VERSION_POLICY, NodeId::POOL] {
            let change = Change { node, base: 0, action: Action::Put(Vec::new()) };
            assert_eq!(right_of(&commit(1, vec![put(1, 0, "a"), change])), Right::Manage);
        }
    }
}
