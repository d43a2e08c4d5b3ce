//! `share FOLDER --with`: a folder of a workspace becomes a workspace of its own, so that nobody who gets it ever sees what is beside it.
//!
//! *Participants*: this device, the workspace around the folder (the *outer* one), and the new one (the *inner* one). *Goals*: at no
//! moment is anything of the folder in neither of them; whatever is cut off, the same command goes on. *Invariants*: the inner workspace has
//! everything that the outer log has put into the folder before that log says so, and nobody is let in before that; which
//! workspace is being made stands in the home before it is on the server.
//!
//! The steps, and what a power cut at each of them leaves: `docs/design/shared-folders.md`.

use std::path::{Path, PathBuf};

use model::codec::{decode_message, encode_message};
use model::environment::random_bytes;
use model::hex;
use model::{Clock, Genesis, Mode, Mount, NodeId, RelativePath};
use serde::{Deserialize, Serialize};
use sync::engine::{SyncReport, first_missing};
use sync::scan::Scope;

use crate::claim::HomeClaim;
use crate::commands::init::{bind, check_name};
use crate::commands::sync::printer;
use crate::connect::{SessionOptions, account_of, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::home::{file_error, read_toml, write_toml};
use crate::mounted;
use crate::progress::Progress;
use crate::report::problem_line;
use crate::server_client::ServerClient;
use crate::system;
use crate::text::{counted, path_text, quoted};

/// How often the folder is brought up to date before it is given up, because others change the workspace all the time.
const ATTEMPTS_MAX: u32 = 20;

/// A folder that is to be a workspace of its own.
#[derive(Debug)]
pub(super) struct Wanted {
    outer: Folder,
    path: RelativePath,
}

/// Returns the folder in a workspace that is to be shared by itself: one that is not yet, or with which this device was not done.
/// Nothing where a whole workspace is meant.
pub(super) fn wanted(context: &Context<'_>, text: Option<&str>) -> Result<Option<Wanted>> {
    let text = text.unwrap_or(".");
    let (folder, inside) = match super::folder_of(context, text) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(error) if error.code == Code::NotSynced => {
            return half_bound(context, text)?.ok_or(error).map(Some);
        }
        Err(error) => return Err(error),
    };
    if !inside.is_root() {
        return Ok(Some(Wanted { outer: folder, path: inside }));
    }
    // It may have got its identity by a run that was cut off.
    let around = folder.root.parent().and_then(|above| Folder::locate(&context.home, above).ok());
    let Some(outer) = around else { return Ok(None) };
    let Ok(below) = folder.root.strip_prefix(&outer.root) else { return Ok(None) };
    let Ok(path) = RelativePath::from_os_path(below) else { return Ok(None) };
    let begun = Begun::all(&outer)?;
    let is_begun = |begun: &Begun| begun.genesis.workspace() == folder.genesis.workspace();
    Ok(begun.iter().any(is_begun).then_some(Wanted { outer, path }))
}

/// Returns a folder that has got its identity by a run that was cut off before the home knew of it.
fn half_bound(context: &Context<'_>, text: &str) -> Result<Option<Wanted>> {
    let path = Path::new(text).canonicalize().map_err(|error| file_error(text.as_ref(), &error))?;
    let around = path.parent().map(|above| Folder::locate(&context.home, above));
    let Some(Ok(outer)) = around else { return Ok(None) };
    let below = path.strip_prefix(&outer.root).ok();
    let path = below.and_then(|below| RelativePath::from_os_path(below).ok());
    let is_begun = !Begun::all(&outer)?.is_empty();
    Ok(path.filter(|_| is_begun).map(|path| Wanted { outer, path }))
}

impl Wanted {
    /// Makes the folder a workspace of its own.
    ///
    /// # Errors
    /// [`Code::NotShareable`]; [`Code::Taken`] where a workspace has the name already; those of the server and of the engine. The same
    /// command goes on where it was cut off.
    pub(super) fn make(&self, context: &Context<'_>, name: Option<&str>) -> Result<()> {
        let server = self.refuse_unfit(context)?;
        if context.flags.dry_run {
            let name = self.name(name)?;
            context.ui.answer(format!("would make '{}' the workspace '{name}'", self.path));
            return Ok(());
        }
        let mut missing_before = None;
        for _ in 0..ATTEMPTS_MAX {
            let (folder, seen) = self.exchange_outer(context)?;
            let begun = self.begin(context, folder, name)?;
            begun.make_on(context, &server)?;
            let (inner, since) = self.fill(context, &begun)?;
            // It may have been changed in between; what is missing twice stays away.
            if let Some(missing) = self.missing(&begun, &inner)? {
                if missing_before.as_ref() == Some(&missing) {
                    return Err(self.not_all_sent(&format!(
                        "'{missing}' is in its workspace now, and not in the folder"
                    )));
                }
                missing_before = Some(missing);
                continue;
            }
            let mount = Mount { workspace: begun.genesis.workspace(), since };
            let mounting = with_engine(context, &self.outer, BESIDE_WATCH, None, async |engine| {
                engine.mount(folder, mount, seen).await
            });
            match mounting {
                // Others have changed something, perhaps in the folder: it is brought up to date once more.
                Err(error) if error.code == Code::SettingsChanged => {}
                Err(error) => return Err(error),
                Ok(()) => return begun.end(),
            }
        }
        let headline =
            format!("'{}' is not shared yet: others change its workspace all the time", self.path);
        Err(CommandError::new(Code::SettingsChanged, headline)
            .state(STATE)
            .help("the same command again", "goes on"))
    }

    /// Returns what the outer log has in the folder and the inner one has not; nothing once it is mounted, because from then on only the inner one
    /// says what is there.
    fn missing(&self, begun: &Begun, inner: &Folder) -> Result<Option<RelativePath>> {
        let outer = self.outer.state()?;
        match outer.mounts()?.contains(&begun.folder) {
            true => Ok(None),
            false => Ok(first_missing(&outer, &begun.folder, &inner.state()?)?),
        }
    }

    /// Refuses what cannot be a workspace of its own. Returns the server.
    fn refuse_unfit(&self, context: &Context<'_>) -> Result<ServerClient> {
        let Place::Served { server } = &self.outer.place else {
            return Err(super::without_server(&self.outer));
        };
        let refuse = |cause: &str| {
            let headline = format!("'{}' cannot be shared by itself", self.path);
            Err(CommandError::new(Code::NotShareable, headline)
                .cause(cause)
                .state("nothing was changed"))
        };
        if self.outer.genesis.mode.sealed().is_some() {
            return refuse(
                "its workspace is encrypted, and a server could not tell who may read what in it",
            );
        }
        let root = self.outer.root.join(self.path.to_os_path());
        let is_folder = root.symlink_metadata().is_ok_and(|data| data.is_dir());
        if !is_folder {
            return refuse("it is no folder; a file is shared with a link");
        }
        mounted::rules::refuse_where_they_matter(&self.outer.root, &self.path)?;
        let above = self.outer.root.parent();
        if above.is_some_and(|above| Folder::locate(&context.home, above).is_ok()) {
            return refuse("it lies in a folder that is shared by itself already");
        }
        let begun = Begun::all(&self.outer)?;
        for mounted in mounted::of(&self.outer)? {
            let is_begun =
                begun.iter().any(|one| one.genesis.workspace() == mounted.mount.workspace);
            let is_it = mounted.path == self.path;
            if is_it && !is_begun {
                return refuse("it is a workspace of its own already; `syncline sync` connects it");
            }
            // What was cut off between the last two steps is mounted, and goes on.
            if !is_it && mounted.path.starts_with(&self.path) {
                return refuse("a folder in it is shared by itself already");
            }
        }
        let client = ServerClient::of_account(&account_of(&context.home, server)?)?;
        let id = self.outer.genesis.workspace().to_string();
        let (line, members) = context.runtime()?.block_on(async {
            let line = client.find_workspace(&id).await?;
            let members = client.members(&id).await?;
            Ok::<_, CommandError>((line, members))
        })?;
        if line.role != "owner" {
            return refuse("only the owner of a workspace shares a part of it");
        }
        if members.len() > 1 {
            return refuse("others may open its workspace, and would lose what is in the folder");
        }
        Ok(client)
    }

    fn name(&self, given: Option<&str>) -> Result<String> {
        let of_folder = || self.path.split_last().map(|(_, name)| name.to_string());
        let name = given.map(ToOwned::to_owned).or_else(of_folder).unwrap_or_default();
        check_name(&name)?;
        Ok(name)
    }

    /// Brings the outer workspace up to date. Returns the node of the folder, and the entry up to which everything of the folder is here.
    fn exchange_outer(&self, context: &Context<'_>) -> Result<(NodeId, u64)> {
        let (report, folder) = exchange(context, &self.outer, async |engine| {
            let report = engine.sync(Scope::Everything).await?;
            let folder = engine.folder_at(&self.path)?;
            Ok((report, folder))
        })?;
        let missing = || {
            CommandError::new(Code::NotShareable, format!("'{}' is not synced", self.path))
                .cause("rules leave it out, or it could not be read")
                .state("nothing was changed")
                .help("syncline status", "says why")
        };
        let folder = folder.ok_or_else(missing)?;
        let mut problems = report.problems.iter();
        match problems.find(|problem| problem.path.starts_with(&self.path)) {
            Some(problem) => Err(self.not_all_sent(&problem_line(problem))),
            None => Ok((folder, report.seq)),
        }
    }

    /// Returns the workspace that the folder becomes: the one with which this device has begun, or a new one.
    fn begin(&self, context: &Context<'_>, folder: NodeId, name: Option<&str>) -> Result<Begun> {
        let known = Begun::all(&self.outer)?.into_iter().find(|begun| begun.folder == folder);
        if let Some(begun) = known {
            return Ok(begun);
        }
        let genesis = Genesis {
            name: self.name(name)?,
            mode: Mode::Plain,
            created: context.clock.now(),
            content_key: random_bytes(&*context.random),
        };
        let file = self.outer.memory_file(&format!("{BEGUN}{folder}.toml"));
        let begun = Begun { file, folder, genesis };
        begun.write()?;
        Ok(begun)
    }

    /// Gives the folder the identity of the new workspace, and sends everything that is in it. Returns the folder, and up to which entry
    /// its workspace has that.
    fn fill(&self, context: &Context<'_>, begun: &Begun) -> Result<(Folder, u64)> {
        let root = self.outer.root.join(self.path.to_os_path());
        let inner = {
            let _claim = HomeClaim::beside_watches(&context.home)?;
            bind(context, &root, begun.genesis.clone(), self.outer.place.clone())?
        };
        let (report, ()) = exchange(context, &inner, async |engine| {
            Ok((engine.sync(Scope::Everything).await?, ()))
        })?;
        let Some(first) = report.problems.first() else { return Ok((inner, report.seq)) };
        let others = match report.problems.len() as u64 - 1 {
            0 => String::new(),
            rest => format!(", and {}", counted(rest, "other", "others")),
        };
        Err(self.not_all_sent(&format!("{}{others}", problem_line(first))))
    }

    fn not_all_sent(&self, cause: &str) -> CommandError {
        let headline = format!("'{}' is not shared: not all that is in it can be sent", self.path);
        CommandError::new(Code::NotShareable, headline).cause(cause).state(STATE).help(
            format!("syncline share {} --with USER:view", quoted(&path_text(&self.path))),
            "goes on, once that is mended",
        )
    }
}

/// What is safe while the folder is not mounted.
const STATE: &str = "everything is synced as before, and nobody else may open the folder";

const BESIDE_WATCH: SessionOptions = SessionOptions::CHANGE_BESIDE_WATCH;

/// Works on a folder and shows how far it is.
fn exchange<T>(
    context: &Context<'_>,
    folder: &Folder,
    work: impl AsyncFnMut(&mut sync::Engine) -> sync::error::Result<(SyncReport, T)>,
) -> Result<(SyncReport, T)> {
    let progress = Progress::new(context.ui);
    let observer = progress.observer(printer(context));
    with_engine(context, folder, BESIDE_WATCH, Some(observer), work)
}

/// How the files are called in which it stands what this device has begun.
const BEGUN: &str = "sharing-";

#[derive(Debug, Serialize, Deserialize)]
struct BegunRecord {
    folder: String,
    genesis: String,
}

/// A workspace that a folder is about to become.
#[derive(Debug)]
struct Begun {
    file: PathBuf,
    folder: NodeId,
    genesis: Genesis,
}

impl Begun {
    /// Returns all with which this device was not done.
    fn all(outer: &Folder) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        let memory = outer.memory_file("");
        let entries = std::fs::read_dir(&memory).map_err(|error| file_error(&memory, &error))?;
        for file in entries.flatten().map(|entry| entry.path()) {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(BEGUN) && name.ends_with(".toml") {
                found.extend(Self::read(&file)?);
            }
        }
        Ok(found)
    }

    fn read(file: &Path) -> Result<Option<Self>> {
        let Some(BegunRecord { folder, genesis }) = read_toml(file)? else { return Ok(None) };
        let genesis = hex::decode(&genesis).and_then(|bytes| decode_message(&bytes).ok());
        let (Ok(folder), Some(genesis)) = (folder.parse(), genesis) else {
            return Err(CommandError::new(
                Code::File,
                format!("{} makes no sense", file.display()),
            ));
        };
        Ok(Some(Self { file: file.to_owned(), folder, genesis }))
    }

    fn write(&self) -> Result<()> {
        let genesis = hex::encode(&encode_message(&self.genesis));
        write_toml(&self.file, &BegunRecord { folder: self.folder.to_string(), genesis })
    }

    /// Makes the workspace on the server, unless it is there already.
    fn make_on(&self, context: &Context<'_>, server: &ServerClient) -> Result<()> {
        let made = context.runtime()?.block_on(server.create_workspace(&self.genesis));
        match made {
            Err(error) if error.code == Code::Taken => {
                self.end()?;
                Err(error.help("--workspace NAME", "gives the folder another name as a workspace"))
            }
            made => made,
        }
    }

    /// Forgets it: the folder is mounted, or nothing was made.
    fn end(&self) -> Result<()> {
        system::remove_file(&self.file).map_err(|error| file_error(&self.file, &error))
    }
}
