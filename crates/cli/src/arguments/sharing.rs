//! Words for who else may open a workspace: other people, and other programs.

use clap::{Args, Subcommand, ValueEnum};
use content::keyring::Fingerprint;

/// What to do with the tokens of the account.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make one, and show it once.
    Add {
        /// What it is called, for example after the program.
        name: String,
        /// What it may do with workspaces; with the account itself it may do nothing.
        #[arg(long, value_enum)]
        scope: TokenScope,
        /// The only workspace that it knows.
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// After how long it ends, such as 12h or 30d; without this it does not.
        #[arg(long, value_name = "TIME")]
        expires: Option<Span>,
    },
    /// List them.
    Ls,
    /// Take one back.
    Rm {
        /// Its name or id.
        token: String,
    },
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenScope {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

impl TokenScope {
    /// Returns the word that the server uses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A span of time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) i64);

impl std::str::FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
        let split = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
        let span = split.and_then(|(digits, unit)| {
            digits.parse::<i32>().ok().map(i64::from)?.checked_mul(*unit)
        });
        span.filter(|&seconds| seconds > 0).map(Self).ok_or("a time such as 12h or 30d is expected")
    }
}

/// Arguments of `share`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ShareArguments {
    /// What to do instead of sharing.
    #[command(subcommand)]
    pub(crate) command: Option<ShareCommand>,
    /// A workspace on the server or a synced folder; this one by default. Or a folder in it; a link may lead to a file, too.
    #[arg(value_name = "WORKSPACE|PATH")]
    pub(crate) target: Option<String>,
    /// Who may open it: the name of an account, and view or edit.
    #[arg(long, value_name = "USER:view|edit")]
    pub(crate) with: Vec<Grant>,
    /// What `syncline key fingerprint` shows at the account, where the workspace is encrypted.
    #[arg(long, value_name = "FINGERPRINT", requires = "with", value_parser = Fingerprint::from_text)]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// What a folder that is shared by itself is called as a workspace; like the folder by default.
    #[arg(long, value_name = "NAME", requires = "with")]
    pub(crate) workspace: Option<String>,
    /// A link for people without an account.
    #[command(flatten)]
    pub(crate) link: LinkArguments,
}

/// What a link is to be.
#[derive(Debug, Args)]
pub(crate) struct LinkArguments {
    /// Make a link: people without an account can see and download what it leads to.
    #[arg(long = "link", conflicts_with = "with")]
    pub(crate) is_wanted: bool,
    /// After how long the link ends, such as 12h or 7d; without this it does not.
    #[arg(long, value_name = "TIME", requires = "is_wanted")]
    pub(crate) expires: Option<Span>,
    /// Read a password for the link from stdin.
    #[arg(long, requires = "is_wanted")]
    pub(crate) password_stdin: bool,
    /// How many downloads the link lets in.
    #[arg(long, value_name = "N", requires = "is_wanted", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_downloads: Option<u64>,
}

/// What to do with those who may open a workspace, and with links.
#[derive(Debug, Subcommand)]
pub(crate) enum ShareCommand {
    /// List them.
    Ls {
        /// A workspace on the server or a synced folder; this one by default.
        #[arg(value_name = "WORKSPACE|DIR")]
        target: Option<String>,
    },
    /// Shut one out; with your own name: leave. Or take a link back.
    Rm {
        /// The name of the account, or the beginning of the id of a link.
        #[arg(value_name = "USER|LINK")]
        user: String,
        /// A workspace on the server or a synced folder; this one by default.
        #[arg(value_name = "WORKSPACE|DIR")]
        target: Option<String>,
    },
}

/// What somebody is to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The account.
    pub(crate) user: String,
    /// What it may do.
    pub(crate) role: GrantedRole,
}

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantedRole {
    /// Read.
    View,
    /// Read and write.
    Edit,
}

impl GrantedRole {
    /// Returns the word that server and user use.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
        }
    }

    /// Returns the word as it stands in a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::View => "read",
            Self::Edit => "read and change",
        }
    }
}

impl std::str::FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = |word: &str| match word {
            "view" => Some(GrantedRole::View),
            "edit" => Some(GrantedRole::Edit),
            _ => None,
        };
        let split = text.rsplit_once(':').filter(|(user, _)| !user.is_empty());
        let grant = split.and_then(|(user, word)| Some((user.to_owned(), role(word)?)));
        let (user, role) = grant.ok_or("USER:view or USER:edit is expected")?;
        Ok(Self { user, role })
    }
}
