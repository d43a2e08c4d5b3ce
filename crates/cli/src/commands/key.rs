//! `syncline key`: the keys of an end-to-end encrypted workspace, and who this account is to others in them.

use content::{KeyObject, Passphrase, Unlocked};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::arguments::{ChangePassphraseArguments, FolderArgument, KeyCommand};
use crate::claim::HomeClaim;
use crate::connect::{self, Driver};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::sealed::{self, Stores, Trying};
use crate::server_client::ServerClient;
use crate::text::counted;
use crate::ui::Symbol;
use crate::{envelopes, identity};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &KeyCommand) -> Result<u8> {
    context.no_dry_run("key")?;
    match command {
        KeyCommand::ShowRecovery(argument) => show_recovery(context, argument),
        KeyCommand::ChangePassphrase(arguments) => change_passphrase(context, arguments),
        KeyCommand::Rotate(argument) => rotate(context, argument),
        KeyCommand::Unlock(argument) => unlock(context, argument),
        KeyCommand::Fingerprint => fingerprint(context),
    }?;
    Ok(0)
}

/// A workspace whose keys are open.
pub(super) struct Opened {
    pub(super) folder: Folder,
    runtime: Runtime,
    pub(super) stores: Stores,
    keys: KeyObject,
    pub(super) unlocked: Unlocked,
    _claim: HomeClaim,
}

impl Opened {
    /// Asks for the passphrase of a folder's workspace.
    pub(super) fn ask(context: &Context<'_>, argument: &FolderArgument) -> Result<Self> {
        let folder = Folder::locate(&context.home, &argument.folder)?;
        let name = &folder.genesis.name;
        if folder.genesis.mode.sealed().is_none() {
            let headline = format!("'{name}' is not encrypted, and has no keys");
            return Err(CommandError::new(Code::Usage, headline).state("nothing was changed"));
        }
        let _claim = HomeClaim::beside_watches(&context.home)?;
        let stores = sealed::stores_of(&context.home, &folder)?;
        let secret = sealed::secret(context, &format!("'{name}'"))?;
        let runtime = context.runtime()?;
        let named = sealed::named_stores_of(&context.home, &folder)?;
        let opened = runtime.block_on(Trying::new(&folder.genesis, &secret).open(&named))?;
        opened.tell(context);
        let sealed::Opened { keys, unlocked, .. } = opened;
        Ok(Self { folder, runtime, stores, keys, unlocked, _claim })
    }

    /// Keeps the open keys on this device, where it has older ones.
    pub(super) fn keep_newer(&self, context: &Context<'_>) -> Result<()> {
        let known = sealed::kept_keys(&self.folder)?.map_or(0, |keys| keys.generation);
        if known < self.unlocked.generation { self.keep(context) } else { Ok(()) }
    }

    /// Adds a key that seals from now on. It is announced first: what members seal with a key that no list names counts for nothing.
    pub(super) fn rotate(&mut self, context: &Context<'_>) -> Result<()> {
        envelopes::announce_key(context, &self.folder, &self.unlocked)?;
        self.unlocked.keyring.rotate(&*context.random)?;
        self.store(context, None)
    }

    /// Keeps the open keys on this device.
    fn keep(&self, context: &Context<'_>) -> Result<()> {
        let (device, _) = connect::device(context, &self.folder.place)?;
        sealed::enroll(context, &self.folder, &self.unlocked, device).map(drop)
    }

    /// Stores changed keys, and only then keeps them on this device: what nobody else can have must not seal anything.
    fn store(&mut self, context: &Context<'_>, passphrase: Option<&Passphrase>) -> Result<()> {
        sealed::check_generation(&self.folder, self.unlocked.generation)?;
        let next =
            self.keys.next(&self.folder.genesis, &self.unlocked, passphrase, &*context.random)?;
        let untold = self.runtime.block_on(sealed::put_keys(&self.stores, &next))?;
        self.unlocked.generation = next.generation();
        self.keep(context)?;
        if untold > 0 {
            let stores = counted(untold as u64, "store was", "stores were");
            context.ui.note(format!(
                "{stores} not told; the next syncs of this device do that, and `syncline check --repair` on any"
            ));
        }
        sealed::note_untold(&self.folder, untold)
    }
}

fn show_recovery(context: &Context<'_>, argument: &FolderArgument) -> Result<()> {
    let opened = Opened::ask(context, argument)?;
    let text = opened.unlocked.keyring.recovery.to_text();
    context.ui.json(&json!({
        "schema": "syncline.key-recovery/1",
        "workspace": opened.folder.genesis.name,
        "recovery_key": text,
    }));
    context.ui.answer(text);
    Ok(())
}

fn change_passphrase(context: &Context<'_>, arguments: &ChangePassphraseArguments) -> Result<()> {
    let is_given = context.variables.get(sealed::PASSPHRASE_FILE).is_some();
    if is_given && arguments.new_passphrase_file.is_none() {
        return Err(CommandError::usage("the new passphrase is missing")
            .state("nothing was changed")
            .help("--new-passphrase-file FILE", "names a file that holds it"));
    }
    let mut opened = Opened::ask(context, &arguments.folder)?;
    let passphrase = sealed::new_passphrase(context, arguments.new_passphrase_file.as_deref())?;
    opened.store(context, Some(&passphrase))?;
    tell(context, &opened, "The passphrase is changed; devices that have the keys go on as before");
    Ok(())
}

fn rotate(context: &Context<'_>, argument: &FolderArgument) -> Result<()> {
    let mut opened = Opened::ask(context, argument)?;
    opened.rotate(context)?;
    let told = envelopes::renew(context, &opened.folder, &opened.unlocked).map_err(|error| {
        error
            .state("the new key is in force; members wait until they are given it")
            .help("syncline key rotate", "makes one more, and gives it to them")
    })?;
    let members = match told {
        0 => String::new(),
        count => format!(
            ", but for {}, who get it by themselves",
            counted(count as u64, "member", "members")
        ),
    };
    tell(
        context,
        &opened,
        &format!(
            "A new key seals what comes from this device from now on; others ask for the passphrase when \
             they meet it{members}. What is stored stays readable with the old keys"
        ),
    );
    Ok(())
}

fn unlock(context: &Context<'_>, argument: &FolderArgument) -> Result<()> {
    let folder = Folder::locate(&context.home, &argument.folder)?;
    if folder.genesis.mode.sealed().is_some()
        && let Some(keys) = sealed::member::renew(context, &Driver::start(context)?, &folder)?
    {
        show(context, &folder, keys.generation, keys.epoch_count());
        context.ui.say(Symbol::Done, "The newest keys are on this device");
        return Ok(());
    }
    let opened = Opened::ask(context, argument)?;
    opened.keep(context)?;
    tell(context, &opened, "The newest keys are on this device");
    Ok(())
}

/// Shows who the account is to others; makes that the first time.
fn fingerprint(context: &Context<'_>) -> Result<()> {
    let account = connect::account_of_home(&context.home)?;
    let client = ServerClient::of_account(&account)?;
    let _claim = HomeClaim::beside_watches(&context.home)?;
    let (identity, is_new) =
        context.runtime()?.block_on(identity::own(context, &client, &account))?;
    let text = identity.public().fingerprint().to_string();
    context.ui.json(&json!({
        "schema": "syncline.fingerprint/1",
        "user": account.user,
        "server": account.server,
        "fingerprint": text,
        "is_new": is_new,
    }));
    context.ui.answer(text);
    Ok(())
}

fn tell(context: &Context<'_>, opened: &Opened, text: &str) {
    let Opened { folder, unlocked, .. } = opened;
    show(context, folder, unlocked.generation, unlocked.keyring.epochs.len());
    context.ui.say(Symbol::Done, text);
}

fn show(context: &Context<'_>, folder: &Folder, generation: u64, keys: usize) {
    context.ui.json(&json!({
        "schema": "syncline.key/1",
        "workspace": folder.genesis.name,
        "generation": generation,
        "keys": keys,
    }));
}
