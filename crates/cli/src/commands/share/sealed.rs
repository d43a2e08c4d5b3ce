//! `syncline share` of an end-to-end encrypted workspace: whoever is let in gets its keys, whoever is shut out gets no later ones.
//!
//! The order of the steps matters where one of them fails. Who may do less from now on is told so by the server first, so that
//! nothing of theirs is taken that counts for nothing; who may do more is written into the log first, for the same reason. Each
//! command can be run again, and then does what is left.

use content::Member;
use content::keyring::Fingerprint;
use content::sealed::MemberRole;
use serde_json::json;

use super::Target;
use crate::arguments::{FolderArgument, Grant, GrantedRole};
use crate::commands::key::Opened;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::text::quoted;
use crate::ui::Symbol;
use crate::{envelopes, identity};

/// An encrypted workspace of this account, and a folder of this device that it is in.
pub(super) struct Sealed<'a> {
    pub(super) target: &'a Target,
    pub(super) folder: &'a Folder,
}

impl Sealed<'_> {
    /// Lets accounts in, or changes what they may do.
    pub(super) fn grant(
        &self,
        context: &Context<'_>,
        grants: &[Grant],
        fingerprint: Option<&Fingerprint>,
    ) -> Result<()> {
        if fingerprint.is_some() && grants.len() != 1 {
            return Err(CommandError::usage("a fingerprint is that of one account")
                .state("nothing was changed"));
        }
        let known = envelopes::members(context, self.folder)?;
        let members = self.recognised(context, grants, (&known, fingerprint))?;
        let name = &self.folder.genesis.name;
        if context.flags.dry_run {
            for Grant { user, role } in grants {
                context.ui.answer(format!("would let {user} {} '{name}'", role.words()));
            }
            return Ok(());
        }
        let mut opened = self.open(context)?;
        opened.keep_newer(context)?;
        let has_another = |member: &Member| {
            known.iter().any(|one| one.name == member.name && one.identity != member.identity)
        };
        // Whoever has the keys by the identity that goes gets no later ones.
        if members.iter().any(has_another) {
            let is_staying = |one: &&Member| members.iter().all(|member| member.name != one.name);
            let staying: Vec<Member> = known.iter().filter(is_staying).cloned().collect();
            self.next_key(context, &mut opened, &staying)?;
        }
        self.let_in(context, members.iter().filter(|member| member.role == MemberRole::View))?;
        envelopes::change(context, self.folder, &opened.unlocked, |all| {
            all.retain(|known| members.iter().all(|member| member.name != known.name));
            all.extend_from_slice(&members);
        })?;
        self.let_in(context, members.iter().filter(|member| member.role == MemberRole::Edit))?;
        let Target { client, user, workspace } = self.target;
        envelopes::seal(context, client, self.folder, &opened.unlocked, &members)?;
        for (Grant { user: guest, role }, member) in grants.iter().zip(&members) {
            context.ui.json(&json!({
                "schema": "syncline.share/1",
                "type": "summary",
                "workspace": name,
                "workspace_id": workspace.id,
                "user": guest,
                "role": role.word(),
                "fingerprint": member.identity.fingerprint().to_string(),
            }));
            let clone = format!("syncline clone {}", quoted(&format!("{user}/{}", workspace.id)));
            context.ui.say(Symbol::Done, format!("{guest} may {} '{name}': {clone}", role.words()));
        }
        Ok(())
    }

    /// Shuts an account out, and seals what comes with a key that it does not have. The server is told first: whatever the log holds, it
    /// need not let anybody in any longer.
    pub(super) fn remove(&self, context: &Context<'_>, user: &str) -> Result<()> {
        let fetched = envelopes::members(context, self.folder);
        let is_named = |members: &Vec<Member>| members.iter().any(|member| member.name == user);
        let mut opened = self.open(context)?;
        let Target { client, workspace, .. } = self.target;
        match context.runtime()?.block_on(client.remove_member(&workspace.id, user)) {
            // It has left, or this was begun before.
            Err(error)
                if error.code == Code::NoSuchThing && fetched.as_ref().is_ok_and(is_named) => {}
            ended => ended?,
        }
        let exchanged = fetched.and_then(|mut members| {
            if !is_named(&members) {
                context.ui.note(format!(
                    "the history that the server shows does not say that {user} was let in; the key changes nevertheless"
                ));
            }
            members.retain(|member| member.name != user);
            self.exchange_keys(context, &mut opened, &members, user)
        });
        exchanged.map_err(|error| {
            let rest = format!("syncline share rm {}", quoted(user));
            error
                .state(format!(
                    "{user} is shut out; what comes may still be sealed with keys that {user} has"
                ))
                .help(rest, "does the rest")
        })
    }

    /// Makes the next key, gives it to those who stay, and writes into the log who they are, in this order: nobody meets anything
    /// that is sealed with a key which is not there.
    fn exchange_keys(
        &self,
        context: &Context<'_>,
        opened: &mut Opened,
        staying: &[Member],
        user: &str,
    ) -> Result<()> {
        self.next_key(context, opened, staying)?;
        envelopes::change(context, self.folder, &opened.unlocked, |all| {
            all.retain(|member| member.name != user);
        })
    }

    /// Makes the next key, and gives it to those who stay.
    fn next_key(
        &self,
        context: &Context<'_>,
        opened: &mut Opened,
        staying: &[Member],
    ) -> Result<()> {
        opened.rotate(context)?;
        let client = &self.target.client;
        envelopes::seal(context, client, self.folder, &opened.unlocked, staying).map(drop)
    }

    fn open(&self, context: &Context<'_>) -> Result<Opened> {
        Opened::ask(context, &FolderArgument { folder: self.folder.root.clone() })
    }

    /// Gets the identities of those who are to be let in, and makes sure that they are theirs.
    fn recognised(
        &self,
        context: &Context<'_>,
        grants: &[Grant],
        (known, fingerprint): (&[Member], Option<&Fingerprint>),
    ) -> Result<Vec<Member>> {
        let (client, server) = (&self.target.client, self.target.client.address());
        let runtime = context.runtime()?;
        let member = |Grant { user, role }: &Grant| {
            let public = runtime.block_on(client.identity_of(user))?;
            let signed = known.iter().find(|member| member.name == *user);
            let signed = signed.map(|member| &member.identity);
            identity::recognise(context, (&server, user), &public, (signed, fingerprint))?;
            let role = match role {
                GrantedRole::View => MemberRole::View,
                GrantedRole::Edit => MemberRole::Edit,
            };
            Ok::<_, CommandError>(Member { name: user.clone(), identity: public, role })
        };
        grants.iter().map(member).collect()
    }

    fn let_in<'m>(
        &self,
        context: &Context<'_>,
        members: impl Iterator<Item = &'m Member>,
    ) -> Result<()> {
        let runtime = context.runtime()?;
        for member in members {
            let word = match member.role {
                MemberRole::View => "view",
                MemberRole::Edit => "edit",
            };
            let Target { client, workspace, .. } = self.target;
            runtime.block_on(client.set_member(&workspace.id, &member.name, word))?;
        }
        Ok(())
    }
}

/// Says that the log of the workspace must be at hand.
pub(super) fn no_folder(name: &str) -> CommandError {
    let headline =
        format!("'{name}' is encrypted, and no folder of this device is given that it is in");
    CommandError::usage(headline)
        .cause("who is a member is signed, and written into the history of the workspace")
        .state("nothing was changed")
        .help("syncline share FOLDER --with USER:view", "names the folder")
}
