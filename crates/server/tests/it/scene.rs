//! One scene for each cell of the matrix of authorisation: a workspace, its owner, and somebody who makes a call.
//!
//! People and rights are written into the database of the running server, as an administrator's command does it, so the server
//! is not told what was taken away: it must find out in the call.

use std::sync::LazyLock;

use model::{DeviceId, Genesis};
use server::auth::passwords::{Passwords, SECRET as SECRET_OF_PASSWORDS};
use server::auth::subject::Subject;
use server::auth::totp::TotpSecret;
use server::auth::{NO_PASSWORD, hash_password};
use server::metadata::{AccountId, IdentityRecord, MemberRole, Metadata, Scope};
use server::services::tokens::{self, NewToken};
use server::services::{accounts, batch, members, workspaces};
use server::{Caller, Sqlite};

use crate::support::{Device, PASSWORD, SystemRandom, TestServer, genesis, http, random};

/// The hash of the password that everybody has; to make one takes a while.
static PASSWORD_HASH: LazyLock<String> =
    LazyLock::new(|| hash_password(PASSWORD, &SystemRandom).unwrap());

/// What the second factor of a caller is made of, where there is one.
pub(crate) const SECRET: TotpSecret = TotpSecret::from_bytes([7; 20]);

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Owner,
    Edit,
    View,
    Removed,
    Stranger,
    Revoked,
    Disabled,
    Nobody,
    ReadToken,
    WriteToken,
    TokenOfAnother,
    ExpiredToken,
}

impl Who {
    pub(crate) fn of_name(name: &str) -> Self {
        match name {
            "owner" => Self::Owner,
            "edit" => Self::Edit,
            "view" => Self::View,
            "removed" => Self::Removed,
            "stranger" => Self::Stranger,
            "revoked" => Self::Revoked,
            "disabled" => Self::Disabled,
            "nobody" => Self::Nobody,
            "read token" => Self::ReadToken,
            "write token" => Self::WriteToken,
            "token of another" => Self::TokenOfAnother,
            "expired token" => Self::ExpiredToken,
            other => panic!("nobody is called '{other}'"),
        }
    }

    /// Tells whether it is a device or a token of the owner.
    pub(crate) fn is_of_owner(self) -> bool {
        !matches!(self, Self::Edit | Self::View | Self::Removed | Self::Stranger)
    }

    /// What its token is limited to.
    fn token(self) -> Option<NewToken> {
        let (scope, workspace, expires) = match self {
            Self::ReadToken => (Scope::Read, None, None),
            Self::WriteToken => (Scope::Write, Some("home"), None),
            Self::TokenOfAnother => (Scope::Write, Some("other"), None),
            // Long before the clock of these tests.
            Self::ExpiredToken => (Scope::Write, None, Some(1)),
            _ => return None,
        };
        let workspace = workspace.map(str::to_owned);
        Some(NewToken { name: "program".to_owned(), scope, workspace, expires })
    }

    /// What it is a member as, before something is taken away.
    fn role(self) -> Option<MemberRole> {
        match self {
            Self::Edit | Self::Removed => Some(MemberRole::Edit),
            Self::View => Some(MemberRole::View),
            _ => None,
        }
    }
}

/// A workspace and people around it.
pub(crate) struct Scene {
    pub(crate) who: Who,
    /// Who makes the call.
    pub(crate) caller: Device,
    pub(crate) caller_name: String,
    account: AccountId,
    /// A device of the owner that prepares the call.
    pub(crate) owner: Device,
    /// Another device of the owner, to be changed.
    pub(crate) victim: DeviceId,
    /// A token of the owner, to be changed.
    pub(crate) token: DeviceId,
    /// Another member, to be changed.
    pub(crate) guest_name: String,
    pub(crate) home: Genesis,
}

/// Makes a scene for each.
pub(crate) fn prepare(server: &TestServer, who: Vec<Who>) -> Vec<Scene> {
    let http = http();
    let scene = |metadata: &mut dyn Metadata, who| scene(server, &http, metadata, who);
    write(server, |metadata| who.iter().map(|&who| scene(metadata, who)).collect())
}

fn write<T>(
    server: &TestServer,
    work: impl FnMut(&mut dyn Metadata) -> server::Result<T> + Send,
) -> T {
    let mut database = Sqlite::open(&server.data().join("metadata.sqlite")).unwrap();
    batch::run(&mut database, vec![Box::new(work)]).pop().unwrap().unwrap()
}

fn scene(
    server: &TestServer,
    http: &reqwest::Client,
    metadata: &mut dyn Metadata,
    who: Who,
) -> server::Result<Scene> {
    let enrol = |metadata: &mut dyn Metadata, account| enrol(server, http, metadata, account);
    let number = u64::from_le_bytes(random());
    let name = |part: &str| format!("{part}{number:x}");
    let account = |metadata: &mut dyn Metadata, part: &str| {
        accounts::create_account(metadata, &name(part), &PASSWORD_HASH, 0)
    };
    let owner_account = account(metadata, "owner")?;
    let guest = account(metadata, "guest")?;
    let identity = IdentityRecord { public: vec![1; 64], locked: vec![2] };
    metadata.replace_identity(guest, &identity, None)?;
    let (owner, owner_device) = enrol(metadata, owner_account)?;
    let (victim, _) = enrol(metadata, owner_account)?;
    let home = genesis("home");
    workspaces::create(metadata, &owner, &home)?;
    workspaces::create(metadata, &owner, &genesis("other"))?;
    let (id, guest_name) = (home.workspace(), name("guest"));
    members::set(metadata, &owner, id, &guest_name, MemberRole::Edit, 0)?;
    let (caller_account, caller_name) = match who.is_of_owner() {
        true => (owner_account, name("owner")),
        false => (account(metadata, "caller")?, name("caller")),
    };
    let (_, mut caller) = enrol(metadata, caller_account)?;
    let add =
        |metadata: &mut dyn Metadata, new| tokens::add(metadata, &SystemRandom, &owner, &new, 0);
    let (token, _) = add(metadata, Who::ReadToken.token().expect("it has one"))?;
    if let Some(new) = who.token() {
        let (record, secret) = add(metadata, new)?;
        caller = Device { id: record.id, token: secret.to_text(), ..caller };
    }
    if let Some(role) = who.role() {
        members::set(metadata, &owner, id, &caller_name, role, 0)?;
    }
    assert_ne!(guest, caller_account);
    Ok(Scene {
        who,
        caller,
        caller_name,
        account: caller_account,
        owner: owner_device,
        victim: victim.device,
        token: token.id,
        guest_name,
        home,
    })
}

fn enrol(
    server: &TestServer,
    http: &reqwest::Client,
    metadata: &mut dyn Metadata,
    account: AccountId,
) -> server::Result<(Caller, Device)> {
    let (caller, token) = accounts::enrol_device(metadata, &SystemRandom, account, "laptop", 0)?;
    let device = Device {
        server: server.url(""),
        token: token.to_text(),
        id: caller.device,
        incarnation: u64::from_le_bytes(random()),
        http: http.clone(),
    };
    Ok((caller, device))
}

impl Scene {
    /// Gives the account of the caller a second factor, which waits for its first code or is on.
    pub(crate) fn add_second_factor(&self, server: &TestServer, is_on: bool) {
        write(server, |metadata| {
            assert!(metadata.offer_second_factor(self.account, &SECRET, 0)?);
            assert!(!is_on || metadata.turn_on_second_factor(self.account, &SECRET, 1, 0)?);
            Ok(())
        });
    }

    /// Keeps the password of the caller as it is kept where it was shown once, so that it can be proved without being sent.
    pub(crate) fn renew_password(&self, server: &TestServer) {
        let new = Passwords::generate(&SystemRandom);
        write(server, |metadata| {
            let passwords =
                Passwords::from_bytes(&metadata.keep_secret(SECRET_OF_PASSWORDS, &new)?)?;
            let kept = passwords.keep(&self.caller_name, PASSWORD, &SystemRandom)?;
            Ok(metadata.update_account(self.account, &kept, false)?)
        });
    }

    /// Binds a person at a provider to the account of the caller.
    pub(crate) fn bind_subject(&self, server: &TestServer, id: &str) {
        let subject = Subject::new("https://id.example.org", id).unwrap();
        assert!(write(server, |metadata| Ok(metadata.bind_subject(&subject, self.account, 0)?)));
    }

    /// Takes away from the caller what it is to lose just before its call.
    pub(crate) fn take_away(&self, server: &TestServer) {
        let Self { who, caller, account, home, .. } = self;
        match who {
            Who::Removed => write(server, |metadata| {
                let found = metadata.workspace(home.workspace())?;
                Ok(metadata.delete_member(found.expect("it is there").number, *account)?)
            }),
            Who::Revoked => write(server, |metadata| Ok(metadata.revoke_device(caller.id)?)),
            Who::Disabled => write(server, |metadata| {
                Ok(metadata.update_account(*account, NO_PASSWORD, true)?)
            }),
            _ => {}
        }
    }
}
