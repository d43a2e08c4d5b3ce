//! Who people are to each other in encrypted workspaces: the identity of this account, and what was seen of others.
//!
//! | file in the home, mode 0600 | holds |
//! |---|---|
//! | `identities/<hash of server and account>.toml` | the identity of an account that this device is or was signed in as |
//! | `people.toml` | the public identities of others, each as it was confirmed |
//!
//! *Goals*: a server that says another identity than before is noticed, and nothing is sealed to it. *Non-goals*: to know whose
//! an identity is: people compare fingerprints.

use std::path::Path;

use content::keyring::{Fingerprint, SecretKey};
use content::{Identity, Passphrase, PublicIdentity};
use model::hex;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::home::{Account, Home, file_error, read_toml, write_toml};
use crate::sealed;
use crate::server_client::ServerClient;
use crate::system::FileLock;

/// An identity of an account of this home.
#[derive(Serialize, Deserialize)]
struct OwnRecord {
    server: String,
    user: String,
    seed: String,
}

/// What was seen of others.
#[derive(Default, Serialize, Deserialize)]
struct People {
    #[serde(default)]
    person: Vec<Person>,
}

#[derive(Serialize, Deserialize)]
struct Person {
    server: String,
    user: String,
    public: String,
}

/// Returns the identity of the account that this device is signed in as, and whether it was made just now: the one that the
/// device keeps, else the one that the passphrase opens, else a new one.
///
/// # Errors
/// [`Code::IdentityChanged`] where the server has another one than this device, or tells others of another one; [`Code::WrongKey`], [`Code::WouldAsk`];
/// [`CommandError`].
pub(crate) async fn own(
    context: &Context<'_>,
    client: &ServerClient,
    account: &Account,
) -> Result<(Identity, bool)> {
    let kept = kept(&context.home, account)?;
    if let Some((public, locked)) = client.own_identity().await? {
        if public != *locked.public() {
            return Err(own_changed(account));
        }
        return match kept {
            Some(identity) if identity.public() == locked.public() => Ok((identity, false)),
            Some(_) => Err(own_changed(account)),
            None => {
                let question = format!("Passphrase of the identity of {}", account.user);
                let passphrase = Passphrase::new(sealed::typed(context, &question)?);
                let identity = locked.unlock(&passphrase)?;
                keep(&context.home, account, &identity)?;
                Ok((identity, false))
            }
        };
    }
    context.ui.note(format!(
        "{} gets an identity, by which others let it into encrypted workspaces; a passphrase locks it for the other \
         devices of the account",
        account.user
    ));
    let passphrase = sealed::new_passphrase(context, None)?;
    let identity = match kept {
        Some(identity) => identity,
        None => Identity::random(&*context.random)?,
    };
    client.set_identity(&identity.lock(&passphrase, &*context.random)?).await?;
    keep(&context.home, account, &identity)?;
    Ok((identity, true))
}

fn kept(home: &Home, account: &Account) -> Result<Option<Identity>> {
    let path = home.identity_path(account);
    let Some(record) = read_toml::<OwnRecord>(&path)? else { return Ok(None) };
    let seed = hex::decode(&record.seed).and_then(|bytes| bytes.try_into().ok());
    let seed = seed.ok_or_else(|| makes_no_sense(&path))?;
    Ok(Some(Identity::from_seed(SecretKey::from_bytes(seed))?))
}

fn keep(home: &Home, account: &Account, identity: &Identity) -> Result<()> {
    let record = OwnRecord {
        server: account.server.clone(),
        user: account.user.clone(),
        seed: hex::encode(identity.seed().as_bytes()),
    };
    write_toml(&home.identity_path(account), &record)
}

fn makes_no_sense(path: &Path) -> CommandError {
    let error =
        std::io::Error::new(std::io::ErrorKind::InvalidData, "what is in it makes no sense");
    file_error(path, &error)
}

fn own_changed(account: &Account) -> CommandError {
    let Account { server, user, .. } = account;
    let headline =
        format!("{server} hands out an identity of {user} that is not that of {user}'s devices");
    CommandError::new(Code::IdentityChanged, headline)
        .cause("it was exchanged at the server; what others seal to it, nobody can open here")
        .state("nothing was changed")
        .help("syncline logout", "and another server, where nobody can explain this")
}

/// Checks that an identity is the one that the user means: that of the fingerprint that was read out, else the one that this account has
/// signed as a member's already, else the one that was confirmed on this device, else one that is confirmed now.
///
/// # Errors
/// [`Code::IdentityChanged`]; [`Code::WouldAsk`] where nobody is there to compare.
pub(crate) fn recognise(
    context: &Context<'_>,
    (server, user): (&str, &str),
    public: &PublicIdentity,
    (signed, read_out): (Option<&PublicIdentity>, Option<&Fingerprint>),
) -> Result<()> {
    let path = context.home.people_path();
    let people: People = read_toml(&path)?.unwrap_or_default();
    let (found, text) = (public.fingerprint(), hex::encode(&public.to_bytes()));
    let known = people.person.iter().find(|one| one.server == server && one.user == user);
    match (read_out, signed, known) {
        (Some(read_out), ..) if *read_out != found => {
            let headline = format!("the fingerprint is not that of the identity of {user}");
            return Err(changed(headline, &found, user));
        }
        (Some(_), ..) => {}
        (None, Some(signed), _) if signed == public => {}
        (None, None, Some(known)) if known.public == text => return Ok(()),
        (None, None, None) => {
            let question = format!(
                "Let {user} read out what `syncline key fingerprint` shows there. Is it {found}?"
            );
            let flag = ("--fingerprint FINGERPRINT", "takes what was read out");
            context.ui.compare(&question, flag)?;
        }
        (None, ..) => {
            let headline = format!("the identity of {user} is not the one that it was");
            return Err(changed(headline, &found, user));
        }
    }
    if context.flags.dry_run {
        return Ok(());
    }
    remember(
        &context.home,
        Person { server: server.to_owned(), user: user.to_owned(), public: text },
    )
}

/// Keeps what was seen of somebody, beside what other commands keep at the same moment.
fn remember(home: &Home, seen: Person) -> Result<()> {
    let (path, lock) = (home.people_path(), home.people_lock());
    let _lock = FileLock::acquire(&lock).map_err(|error| file_error(&lock, &error))?;
    let mut people: People = read_toml(&path)?.unwrap_or_default();
    people.person.retain(|person| (&person.server, &person.user) != (&seen.server, &seen.user));
    people.person.push(seen);
    write_toml(&path, &people)
}

fn changed(headline: String, found: &Fingerprint, user: &str) -> CommandError {
    CommandError::new(Code::IdentityChanged, headline)
        .cause(format!("the server says {found}; it may have put another one in place of it"))
        .state("nothing was shared, and nothing was changed")
        .help(
            "syncline share --with USER:view --fingerprint FINGERPRINT",
            format!("takes what {user} reads out from `syncline key fingerprint`, by another way than this server"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(user: usize, public: &str) -> Person {
        let server = "https://files.example.org".to_owned();
        Person { server, user: format!("user{user}"), public: public.to_owned() }
    }

    #[test]
    fn what_commands_see_of_people_at_the_same_moment_is_all_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        std::thread::scope(|scope| {
            for user in 0..8 {
                let home = &home;
                scope.spawn(move || {
                    for public in ["before", "now"] {
                        remember(home, person(user, public)).expect("kept");
                    }
                });
            }
        });
        let people: People = read_toml(&home.people_path()).expect("read").expect("is there");
        let mut seen: Vec<_> =
            people.person.into_iter().map(|one| (one.user, one.public)).collect();
        seen.sort();
        let all = (0..8).map(|user| (format!("user{user}"), "now".to_owned()));
        assert_eq!(seen, all.collect::<Vec<_>>());
    }
}
