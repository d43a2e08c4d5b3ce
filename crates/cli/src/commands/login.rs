//! `syncline login`: makes this device a device of an account.

use serde_json::json;
use tokio::runtime::Runtime;

use crate::arguments::LoginArguments;
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Code, Result};
use crate::home::Account;
use crate::provider;
use crate::server_client::{ServerClient, SignedIn};
use crate::ui::{ANY_CODE, Symbol};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &LoginArguments) -> Result<u8> {
    context.no_dry_run("login")?;
    let _claim = HomeClaim::alone(&context.home)?;
    let client = ServerClient::new(&arguments.server)?;
    let device_name = match &arguments.device {
        Some(name) => name.clone(),
        None => context.home.device_name()?,
    };
    let before = context.home.account()?.filter(|before| before.server == client.address());
    let runtime = context.runtime()?;
    let login = Login { context, arguments, client, runtime, device_name };
    let signed_in = match &arguments.user {
        Some(user) => login.by_password(user)?,
        None => login.by_provider()?,
    };
    let Login { client, runtime, device_name, .. } = login;
    let account = Account {
        server: client.address(),
        user: signed_in.account,
        device_id: signed_in.device_id,
        device_name,
        token: signed_in.token,
    };
    context.home.set_account(&account)?;
    // The device that this one was before is not needed any more; that it stays in the list does no harm.
    if let Some(before) = before
        && let Ok(client) = ServerClient::of_account(&before)
    {
        let _ = runtime.block_on(client.logout());
    }
    context.ui.json(&json!({
        "schema": "syncline.login/1",
        "type": "summary",
        "server": account.server,
        "user": account.user,
        "device": account.device_name,
        "device_id": account.device_id,
    }));
    context.ui.say(
        Symbol::Done,
        format!("Signed in as {} on device \"{}\"", account.user, account.device_name),
    );
    Ok(0)
}

struct Login<'a> {
    context: &'a Context<'a>,
    arguments: &'a LoginArguments,
    client: ServerClient,
    runtime: Runtime,
    device_name: String,
}

impl Login<'_> {
    fn by_password(&self, user: &str) -> Result<SignedIn> {
        let ui = self.context.ui;
        let question = format!("Password of {user}");
        let password = ui.password(self.arguments.password_stdin, &question)?;
        self.with_code(
            || Ok(()),
            |(), code| {
                let (client, device) = (&self.client, &self.device_name);
                self.runtime.block_on(async {
                    match self.arguments.send_password {
                        false => client.login(user, &password, code, device).await,
                        true => client.login_by_sending(user, &password, code, device).await,
                    }
                })
            },
        )
    }

    fn by_provider(&self) -> Result<SignedIn> {
        let Self { context, arguments, client, runtime, device_name } = self;
        let offer = runtime.block_on(client.provider())?;
        // What a browser brings back counts once, so it is sent out anew where a code is wanted, too.
        let visit = || provider::visit(context, runtime, client.base(), &offer, &arguments.browser);
        self.with_code(visit, |grant, code| {
            runtime.block_on(client.login_by_provider(&grant, code, device_name))
        })
    }

    /// Signs in by what is brought for each attempt; with the code that was given, or that is asked for where the server wants one, and not
    /// before.
    fn with_code<T>(
        &self,
        bring: impl Fn() -> Result<T>,
        login: impl Fn(T, Option<&str>) -> Result<SignedIn>,
    ) -> Result<SignedIn> {
        let ui = self.context.ui;
        let file = self.arguments.code.code_file.as_deref();
        let given = file.map(|file| ui.code(Some(file), ANY_CODE)).transpose()?;
        match login(bring()?, given.as_deref()) {
            Err(error) if error.code == Code::SecondFactorNeeded && ui.may_ask() => {
                let brought = bring()?;
                login(brought, Some(&ui.code(None, ANY_CODE)?))
            }
            signed_in => signed_in,
        }
    }
}
