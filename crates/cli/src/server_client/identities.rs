//! Who accounts are to each other in encrypted workspaces, as the server hands it out.

use content::{LockedIdentity, PublicIdentity};
use model::hex;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::ServerClient;
use crate::error::{Code, CommandError, Result};

#[derive(Debug, Deserialize)]
struct IdentityLine {
    public: String,
    locked: Option<String>,
}

impl ServerClient {
    /// Returns the identity of this account, if it has one: as the server tells others, and locked.
    ///
    /// # Errors
    /// [`Code::KeysDamaged`] where it is none; [`CommandError`].
    pub(crate) async fn own_identity(&self) -> Result<Option<(PublicIdentity, LockedIdentity)>> {
        let line: IdentityLine = match self.ask(self.request(Method::GET, &["identity"])).await {
            Err(error) if error.code == Code::NoSuchThing => return Ok(None),
            line => line?,
        };
        let bytes = line.locked.as_deref().and_then(hex::decode).unwrap_or_default();
        Ok(Some((self.public_of(&line)?, LockedIdentity::from_bytes(&bytes)?)))
    }

    /// Makes the identity of this account, of which there is none.
    ///
    /// # Errors
    /// [`Code::Taken`] where another device was faster; [`CommandError`].
    pub(crate) async fn set_identity(&self, locked: &LockedIdentity) -> Result<()> {
        let (public, locked) =
            (hex::encode(&locked.public().to_bytes()), hex::encode(&locked.to_bytes()));
        let body = json!({"public": public, "locked": locked});
        self.send(self.request(Method::PUT, &["identity"]).json(&body)).await.map(drop)
    }

    /// Returns what the server says of the identity of an account.
    ///
    /// # Errors
    /// [`Code::NoIdentity`]; [`CommandError`].
    pub(crate) async fn identity_of(&self, user: &str) -> Result<PublicIdentity> {
        let request = self.request(Method::GET, &["users", user, "identity"]);
        let line: IdentityLine = match self.ask(request).await {
            Err(error) if error.code == Code::NoSuchThing => {
                let headline = format!("{user} cannot be let into an encrypted workspace yet");
                return Err(CommandError::new(Code::NoIdentity, headline)
                    .cause(error.headline)
                    .state("nothing was changed")
                    .help(
                        "syncline key fingerprint",
                        format!("{user} runs this first, and reads out to you what it shows"),
                    ));
            }
            line => line?,
        };
        self.public_of(&line)
    }

    fn public_of(&self, line: &IdentityLine) -> Result<PublicIdentity> {
        let public = hex::decode(&line.public).and_then(|bytes| PublicIdentity::from_bytes(&bytes));
        public.ok_or_else(|| self.nonsense("it gave an identity that is none"))
    }
}
