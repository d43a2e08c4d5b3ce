//! The words of the command line: what `docs/guide` and scripts rely on.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::VersionPolicy;

mod account;
mod administration;
mod experiments;
mod gateway;
mod invitations;
mod keys;
mod serving;
mod sharing;

pub(crate) use account::{
    AccountCommand, BrowserArguments, LoginArguments, OidcCommand, PasswdArguments, TotpCommand,
};
pub(crate) use administration::{AdminCommand, StoreArgument, TargetArgument};
pub(crate) use experiments::{
    BenchCommand, BenchCompareArguments, BenchLsArguments, BenchPlotArguments, BenchProbeArguments,
    BenchRunArguments, BenchTablesArguments, LabCommand, LabReportArguments, LabRunArguments,
    TraceCommand, TraceExecArguments, TraceFolder, TraceHomesArguments, TraceIotArguments,
    TraceMetasyncArguments, TracePreset, TraceReading, TraceRecordArguments,
    TraceStacksyncArguments, TraceStart, TraceThesisArguments, TraceUbuntuoneArguments,
    TraceVersionsArguments, TraceWebr2syncArguments,
};
pub(crate) use gateway::{GatewayArguments, GatewayCommand};
pub(crate) use invitations::InvitationCommand;
pub(crate) use keys::{ChangePassphraseArguments, KeyCommand};
use serving::instances;
pub(crate) use serving::{
    OidcAccounts, OidcArguments, RoleArgument, SubjectArguments, UserOidcCommand,
};
pub(crate) use sharing::{
    Grant, GrantedRole, LinkArguments, ShareArguments, ShareCommand, TokenCommand,
};

/// Personal cloud: keeps folders equal across devices, through a server or a plain store.
#[derive(Debug, Parser)]
#[command(name = "syncline", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true, propagate_version = false)]
pub(crate) struct Arguments {
    /// Flags of every command.
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  syncline init ~/Notes --backend disk=file:/mnt/disk/cloud   a folder in a plain store
  syncline clone Notes ~/Notes                                a folder from the server
  syncline sync                                               exchange everything, once
  syncline demo                                               see it work on this computer";

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct GlobalFlags {
    /// Work as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON: one object, or one in each line for long jobs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print answers and errors only.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more; twice for more still.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Show no progress.
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Never ask; fail and name the flag instead.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Answer questions with yes.
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Say what would be done, and change nothing.
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Colours.
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a folder a synced folder.
    Init(InitArguments),
    /// Get a workspace into a folder.
    Clone(CloneArguments),
    /// Exchange everything in both directions, once.
    Sync(SyncArguments),
    /// Keep a folder in sync until stopped.
    Watch(WatchArguments),
    /// Keep a folder in sync in the background.
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Say what is new, waiting or in conflict.
    Status(FolderArgument),
    /// List files, also old and deleted ones.
    Ls(LsArguments),
    /// List versions, newest first.
    Log(LogArguments),
    /// Print a version of a file.
    Cat(CatArguments),
    /// Bring back an old or deleted file or folder.
    Restore(RestoreArguments),
    /// List conflicts that wait for a decision.
    Conflicts(FolderArgument),
    /// Decide a conflict.
    Resolve(ResolveArguments),
    /// Record local changes, without the network.
    Checkin(CheckinArguments),
    /// Learn what others did, without changing files.
    Fetch(FolderArgument),
    /// Apply what was fetched.
    Merge(CheckinArguments),
    /// Send what was recorded.
    Push(FolderArgument),
    /// Record and send: checkin, push.
    Up(CheckinArguments),
    /// Learn and apply: fetch, merge.
    Down(CheckinArguments),
    /// Sign this device in to a server.
    Login(LoginArguments),
    /// Sign this device out.
    Logout,
    /// Say who is signed in where.
    Whoami,
    /// See to the own account: its password, a second factor.
    #[command(subcommand)]
    Account(AccountCommand),
    /// List, rename and revoke devices.
    #[command(subcommand)]
    Device(DeviceCommand),
    /// Make, list and take back tokens for other programs.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Let others into a workspace, to view or to edit.
    Share(ShareArguments),
    /// Manage the stores of a workspace without a server.
    #[command(subcommand)]
    Backend(BackendCommand),
    /// Show and change the keys of an end-to-end encrypted workspace.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Let a new device in without telling it the passphrase: shows a code for `clone --pair`.
    Pair(FolderArgument),
    /// Find out whether everything is stored as it should be, and repair it.
    Check(CheckArguments),
    /// Remove old versions by policy, and what nothing refers to.
    Cleanup(CleanupArguments),
    /// Open a synced folder to other programs on this computer.
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Run a server.
    Serve(Box<ServeArguments>),
    /// Manage the accounts of a server.
    #[command(subcommand)]
    User(UserCommand),
    /// Back up, restore, verify, move and describe a server.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Find what is wrong and say what to do.
    Doctor(FolderArgument),
    /// Show two devices and a server at work, in a temporary folder.
    Demo(DemoArguments),
    /// Measure the tables and figures of the papers again.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Benchmark stores, and folders that any program keeps in sync.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Make traces of what happens to a folder, and play them.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Print completions for a shell.
    Completion(CompletionArguments),
    /// Print the manual page, or write all of them.
    Man(ManArguments),
    /// Print the version.
    Version,
}

/// A folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct FolderArgument {
    /// The folder, or one inside of it.
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) folder: PathBuf,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The folder; it is made where it is missing.
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) folder: PathBuf,
    /// Name of the workspace; that of the folder by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,
    /// Keep the workspace in this store, without a server; several times, in several stores.
    #[arg(long = "backend", value_name = "NAME=URL")]
    pub(crate) backends: Vec<String>,
    /// What opens that store: a TOML file that only you can read.
    #[arg(long = "credentials", value_name = "NAME=FILE")]
    pub(crate) credentials: Vec<String>,
    /// Keep so many copies of everything, each in another store; 2 by default.
    #[arg(long, value_name = "R", conflicts_with = "erasure")]
    pub(crate) replicas: Option<u8>,
    /// Cut everything into N blocks, each in another store, of which any K are enough.
    #[arg(long, value_name = "K/N")]
    pub(crate) erasure: Option<String>,
    /// Agree so that one of four stores may say anything, two of seven and so on; a commit takes longer.
    #[arg(long, conflicts_with = "plain")]
    pub(crate) stores_may_lie: bool,
    /// End-to-end encrypted: the default in a store, and not on a server.
    #[arg(long, conflicts_with = "plain")]
    pub(crate) sealed: bool,
    /// Not encrypted, so that the server or store can read it.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Arguments of `clone`.
#[derive(Debug, Args)]
pub(crate) struct CloneArguments {
    /// Name or id of the workspace.
    #[arg(value_name = "WORKSPACE")]
    pub(crate) workspace: String,
    /// The folder; by default one with the name of the workspace. Files that are there are merged.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// A store that holds the workspace; it leads to the others.
    #[arg(long = "backend", value_name = "NAME=URL")]
    pub(crate) backends: Vec<String>,
    /// What opens that store, or another of the workspace: a TOML file that only you can read.
    #[arg(long = "credentials", value_name = "NAME=FILE")]
    pub(crate) credentials: Vec<String>,
    /// Refuse a workspace that is not end-to-end encrypted, whatever the store says.
    #[arg(long)]
    pub(crate) sealed: bool,
    /// Ask for the code that `syncline pair` shows on another device, instead of the passphrase.
    #[arg(long)]
    pub(crate) pair: bool,
}

/// Arguments of `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArguments {
    /// The folder, and the brake.
    #[command(flatten)]
    pub(crate) checkin: CheckinArguments,
}

/// Arguments of the steps that look at the folder.
#[derive(Debug, Args)]
pub(crate) struct CheckinArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Take it as meant that many files vanished; wants --yes.
    #[arg(long)]
    pub(crate) allow_mass_delete: bool,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Leave the terminal; used by `daemon start`.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// End when standard input does, and with it whoever started this.
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
}

/// What to do with the background process of a folder.
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start it.
    Start(FolderArgument),
    /// Stop it.
    Stop(FolderArgument),
    /// Say whether it runs, and what it did last.
    Status(FolderArgument),
    /// Write a unit for `systemd --user`, so that it starts by itself.
    Install(FolderArgument),
}

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArguments {
    /// What to list; the synced folder by default.
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) path: PathBuf,
    /// As it was then: a version (v12) or a local time (2026-11-20 10:09).
    #[arg(long, value_name = "vN|TIME")]
    pub(crate) at: Option<String>,
    /// Also what was deleted.
    #[arg(long)]
    pub(crate) deleted: bool,
    /// Also what lies in directories.
    #[arg(short, long)]
    pub(crate) recursive: bool,
}

/// Arguments of `log`.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Whose versions; those of everything by default.
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) path: PathBuf,
    /// At most so many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Arguments of `cat`.
#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The file.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// As it was then: a version (v12) or a local time (2026-11-20 10:09).
    #[arg(long, value_name = "vN|TIME")]
    pub(crate) at: Option<String>,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// What to bring back.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// As it was then: a version (v12) or a local time (2026-11-20 10:09).
    #[arg(long, value_name = "vN|TIME")]
    pub(crate) at: String,
    /// Put it there instead.
    #[arg(long, value_name = "DEST")]
    pub(crate) to: Option<PathBuf>,
    /// Replace what is there; it goes to the trash of the folder.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// Arguments of `resolve`.
#[derive(Debug, Args)]
pub(crate) struct ResolveArguments {
    /// The file, or its kept copy.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// What to keep.
    #[arg(long, value_name = "mine|theirs|both", required_unless_present = "merge")]
    pub(crate) keep: Option<KeepChoice>,
    /// Merge the lines that the two sides changed since they parted; a line that both changed needs `--keep`.
    #[arg(long, conflicts_with = "keep")]
    pub(crate) merge: bool,
}

/// What to keep of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepChoice {
    /// What was changed on this device; the other version stays in the history.
    Mine,
    /// What was changed on the other device; this one's version stays in the history.
    Theirs,
    /// Both, as two files.
    Both,
}

/// What to do with the devices of the account.
#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    /// List them.
    Ls,
    /// Rename one.
    Rename {
        /// Its name or id.
        device: String,
        /// The new name.
        name: String,
    },
    /// Sign one out.
    Revoke {
        /// Its name or id.
        device: String,
    },
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Write again what is missing or damaged: from other stores, or else from the folder; of the history only what is decided.
    #[arg(long)]
    pub(crate) repair: bool,
    /// Read all data and compare it with its names; without this only lists are compared.
    #[arg(long)]
    pub(crate) read_data: bool,
}

/// Arguments of `cleanup`.
#[derive(Debug, Args)]
pub(crate) struct CleanupArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Which versions the workspace keeps from now on, such as all:10m,1m:1h,1h:3d,1d:30d,deleted:30d (the default): all of the
    /// last ten minutes, then the last of each minute for an hour, and so on.
    #[arg(long, value_name = "RULES")]
    pub(crate) keep: Option<VersionPolicy>,
    /// Believe the clock of this computer although it is a year ahead of everything in the workspace.
    #[arg(long)]
    pub(crate) trust_clock: bool,
}

/// What to do with the stores of the workspace of the folder.
#[derive(Debug, Subcommand)]
pub(crate) enum BackendCommand {
    /// List them.
    Ls,
    /// Find out by experiment what they can do.
    Check {
        /// One of them; all by default.
        name: Option<String>,
    },
    /// Add a store, which takes its share of the data and keeps the order of changes with the others.
    Add(BackendAddArguments),
    /// Sign in to the service of a store, as Dropbox or Google Drive want it.
    Login(BackendLoginArguments),
    /// Remove a store; what it holds goes to the others first.
    Rm {
        /// The store.
        name: String,
        /// It is gone: nothing is read from it any more.
        #[arg(long)]
        dead: bool,
        /// Empty it before, which is what happens anyway.
        #[arg(long, hide = true, conflicts_with = "dead")]
        drain: bool,
    },
    /// Fill a store again that was emptied.
    Renew {
        /// The store.
        name: String,
    },
    /// Go on in the stores to which this one leads, after those that this device knows were exchanged.
    Find {
        /// The address of one of them.
        url: String,
        /// What opens it: a TOML file that only you can read.
        #[arg(long, value_name = "FILE")]
        credentials: Option<PathBuf>,
    },
    /// Change one of them, or how much is kept.
    Set(BackendSetArguments),
    /// Bring everything to where it should be after a change.
    Rebalance(RebalanceArguments),
}

/// Arguments of `backend rebalance`.
#[derive(Debug, Default, Args)]
pub(crate) struct RebalanceArguments {
    /// Remove what is stored twice although another device has begun to, and will never run again.
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// Arguments of `backend add`.
#[derive(Debug, Args)]
pub(crate) struct BackendAddArguments {
    /// How to call it.
    pub(crate) name: String,
    /// Its address.
    pub(crate) url: String,
    /// Its share, in proportion to the others; gigabytes are a good measure.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
    /// What opens it: a TOML file that only you can read.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// It takes data and has no part in the order of changes.
    #[arg(long)]
    pub(crate) data_only: bool,
}

/// Arguments of `backend login`.
#[derive(Debug, Args)]
pub(crate) struct BackendLoginArguments {
    /// The name of a store of this workspace, or the address of one that is to be.
    #[arg(value_name = "NAME|URL")]
    pub(crate) store: String,
    /// Which program you registered with the service: a TOML file with `client_id` and `client_secret`.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Where the browser comes back to on this device, for services without codes; register `http://127.0.0.1:PORT/` there.
    #[arg(long, value_name = "PORT", default_value_t = 47824)]
    pub(crate) port: u16,
}

/// Arguments of `backend set`.
#[derive(Debug, Args)]
pub(crate) struct BackendSetArguments {
    /// The store.
    #[arg(value_name = "NAME", required_unless_present_any = ["replicas", "erasure"])]
    pub(crate) name: Option<String>,
    /// Its new address, for all devices.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) url: Option<String>,
    /// Only this device reaches it there, as a disk that is mounted elsewhere.
    #[arg(long, requires = "url")]
    pub(crate) here: bool,
    /// Its share, in proportion to the others; gigabytes are a good measure.
    #[arg(long, value_name = "N", requires = "name", conflicts_with = "here", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
    /// Keep so many copies of everything.
    #[arg(long, value_name = "R", conflicts_with_all = ["erasure", "here"])]
    pub(crate) replicas: Option<u8>,
    /// Cut everything into N blocks, of which any K are enough.
    #[arg(long, value_name = "K/N", conflicts_with = "here")]
    pub(crate) erasure: Option<String>,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen; port 0 picks one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8470")]
    pub(crate) listen: SocketAddr,
    /// Where everything is kept.
    #[command(flatten)]
    pub(crate) data: DataArgument,
    /// The store for packs; a folder beside the database by default.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// What opens that store: a TOML file that only you can read.
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(crate) store_credentials: Option<PathBuf>,
    /// How many connections there may be; each takes a file descriptor.
    #[arg(long, value_name = "N", default_value_t = 700)]
    pub(crate) connections: usize,
    /// How many connections of one address there may be.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) connections_per_address: usize,
    /// Speak TLS: the certificate, and those that lead to its authority (PEM); read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Where Prometheus may ask at /metrics; nowhere by default.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Write down who signed in, was refused or revoked, line by line.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    /// A provider by which people sign in, too.
    #[command(flatten)]
    pub(crate) oidc: OidcArguments,
    /// What it does of the work; a part of it wants --broker and --database.
    #[arg(long, value_name = "ROLE", value_enum, default_value_t = RoleArgument::All)]
    pub(crate) role: RoleArgument,
    /// With --role supervisor: how many sync services it runs at least and at most.
    #[arg(long, value_name = "FROM..TO", default_value = "1..8", value_parser = instances)]
    pub(crate) instances: RangeInclusive<usize>,
    /// With --role supervisor: after how many seconds in which fewer would have done one is taken away.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) calm: u64,
    /// End when standard input does, and with it whoever started this.
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
    /// The message broker where it meets other servers on the database; none by default.
    #[arg(long, value_name = "amqp://USER@HOST|nats://HOST", requires = "database")]
    pub(crate) broker: Option<String>,
}

/// The data folder of a server.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgument {
    /// Data folder of the server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// PostgreSQL for accounts and logs, shared by servers; a file in the data folder by default.
    #[arg(long, value_name = "postgres://USER@HOST/NAME")]
    pub(crate) database: Option<String>,
}

/// What to do with the accounts of a server.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add an account.
    Add {
        /// Its name.
        name: String,
        /// Read the password from stdin.
        #[arg(long)]
        password_stdin: bool,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// List accounts.
    Ls {
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Remove an account, or disable it where it owns workspaces; wants --yes.
    Rm {
        /// Its name.
        name: String,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Shut an account out, and leave everything as it is.
    Disable {
        /// Its name.
        name: String,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Let a disabled account in again.
    Enable {
        /// Its name.
        name: String,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Set a password.
    Passwd {
        /// The account.
        name: String,
        /// Read the password from stdin.
        #[arg(long)]
        password_stdin: bool,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Remove the second factor of somebody who has lost it: the password is enough from now on; wants --yes.
    TotpOff {
        /// The account.
        name: String,
        /// Write it down where `serve --audit-log` does.
        #[arg(long, value_name = "FILE")]
        audit_log: Option<PathBuf>,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Let somebody sign in to an account by a provider (OpenID Connect).
    #[command(subcommand)]
    Oidc(UserOidcCommand),
    /// Let somebody make an account for themselves, in a browser.
    #[command(subcommand)]
    Invitation(InvitationCommand),
    /// Limit what an account may store.
    Quota {
        /// The account.
        name: String,
        /// For example 50GiB, or none.
        #[arg(value_name = "SIZE|none")]
        quota: String,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Files to show it on; it is copied and stays as it is. A generated project by default.
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Option<PathBuf>,
    /// Keep the temporary folder.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The page: a command, or nothing for the program.
    #[arg(value_name = "COMMAND")]
    pub(crate) page: Option<String>,
    /// Write all pages into this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    pub(crate) out: Option<PathBuf>,
}
