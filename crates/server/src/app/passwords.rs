//! Turns at stretching passwords, which takes a processor and much memory for a while.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::App;
use crate::auth;
use crate::auth::passwords::{Passwords, SECRET};
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;

/// A turn; others wait until it is over.
#[derive(Debug)]
pub(crate) struct PasswordTurn(OwnedSemaphorePermit);

impl App {
    /// Waits for a turn.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`], as the server stops.
    pub(crate) async fn password_turn(&self) -> Result<PasswordTurn> {
        let permit = Arc::clone(&self.logins).acquire_owned().await;
        permit.map(PasswordTurn).map_err(|_| ServerError::STOPPING)
    }

    /// Returns the secret behind the passwords of accounts, which is made when it is wanted for the first time.
    ///
    /// # Errors
    /// [`ServerError::Metadata`].
    pub(crate) async fn passwords(&self) -> Result<Arc<Passwords>> {
        let open = async || {
            let kept = self.readers.read(|metadata| Ok(metadata.secret(SECRET)?)).await?;
            let bytes = match kept {
                Some(bytes) => bytes,
                None => {
                    let new = Passwords::generate(&*self.random);
                    let keep =
                        move |metadata: &mut dyn Metadata| Ok(metadata.keep_secret(SECRET, &new)?);
                    self.writer.write(keep).await?
                }
            };
            Passwords::from_bytes(&bytes).map(Arc::new)
        };
        self.passwords.get_or_try_init(open).await.cloned()
    }

    /// Returns what to keep of the new password of an account, when it is its turn.
    ///
    /// # Errors
    /// As [`Passwords::keep`]; [`ServerError::Unavailable`].
    pub(crate) async fn keep_password(&self, account: String, password: String) -> Result<String> {
        let (passwords, random) = (self.passwords().await?, Arc::clone(&self.random));
        let turn = self.password_turn().await?;
        turn.stretch(move || passwords.keep(&account, &password, &*random)).await?
    }

    /// Returns the hash of the password of a link, when it is its turn.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for a password that is none, [`ServerError::Unavailable`].
    pub(crate) async fn hash_password(&self, password: String) -> Result<String> {
        let random = Arc::clone(&self.random);
        let turn = self.password_turn().await?;
        turn.stretch(move || auth::hash_password(&password, &*random)).await?
    }
}

impl PasswordTurn {
    /// Does `work` where it may block; the turn is over with it, even if nobody waits for it any more.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`], as the server stops.
    pub(crate) async fn stretch<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let work = move || {
            let done = work();
            drop(self.0);
            done
        };
        blocking::piece(work).await
    }
}
