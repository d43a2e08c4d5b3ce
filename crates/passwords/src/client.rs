//! The half that knows the password.

use model::Random;
use opaque_ke::errors::{InternalError, ProtocolError};
use opaque_ke::{
    ClientLogin, ClientLoginFinishParameters, ClientRegistration,
    ClientRegistrationFinishParameters, CredentialResponse, RegistrationResponse,
};
use zeroize::Zeroizing;

use crate::{PasswordError, Source, Suite, check};

/// 64 secret bytes that follow from the password and the account's key at the server, the same at each sign-in until the password is changed. The
/// server never knows them, so they can lock what it keeps for the account.
pub type ExportKey = Zeroizing<Vec<u8>>;

/// A password on its way into a [`Record`](crate::Record).
pub struct Registration {
    state: ClientRegistration<Suite>,
    password: Zeroizing<String>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Registration(secret)")
    }
}

impl Registration {
    /// Begins; returns the first message to the server, too.
    ///
    /// # Errors
    /// [`PasswordError::Length`].
    pub fn start(password: &str, random: &dyn Random) -> Result<(Self, Vec<u8>), PasswordError> {
        check(password)?;
        let started = ClientRegistration::<Suite>::start(&mut Source(random), password.as_bytes());
        let started = started.map_err(|_| PasswordError::Message)?;
        let password = Zeroizing::new(password.to_owned());
        Ok((Self { state: started.state, password }, started.message.serialize().to_vec()))
    }

    /// Takes the server's answer; returns the last message to it, and the key. Takes as long as one Argon2id.
    ///
    /// # Errors
    /// [`PasswordError::Message`], [`PasswordError::Memory`].
    pub fn finish(
        self,
        answer: &[u8],
        random: &dyn Random,
    ) -> Result<(Vec<u8>, ExportKey), PasswordError> {
        let answer =
            RegistrationResponse::deserialize(answer).map_err(|_| PasswordError::Message)?;
        let (password, parameters) =
            (self.password.as_bytes(), ClientRegistrationFinishParameters::default());
        let finished = self.state.finish(&mut Source(random), password, answer, parameters);
        let finished = finished.map_err(failed)?;
        let message = finished.message.serialize().to_vec();
        Ok((message, Zeroizing::new(finished.export_key.to_vec())))
    }
}

/// A password that is about to be proved.
pub struct Login {
    state: ClientLogin<Suite>,
    password: Zeroizing<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Login(secret)")
    }
}

impl Login {
    /// Begins; returns the first message to the server, too.
    ///
    /// # Errors
    /// [`PasswordError::Length`].
    pub fn start(password: &str, random: &dyn Random) -> Result<(Self, Vec<u8>), PasswordError> {
        check(password)?;
        let started = ClientLogin::<Suite>::start(&mut Source(random), password.as_bytes());
        let started = started.map_err(|_| PasswordError::Message)?;
        let password = Zeroizing::new(password.to_owned());
        Ok((Self { state: started.state, password }, started.message.serialize().to_vec()))
    }

    /// Takes the server's answer; returns the proof to send, and the key. Takes as long as one Argon2id.
    ///
    /// # Errors
    /// [`PasswordError::Wrong`], after which nothing is to be sent; [`PasswordError::Message`], [`PasswordError::Memory`].
    pub fn finish(
        self,
        answer: &[u8],
        random: &dyn Random,
    ) -> Result<(Vec<u8>, ExportKey), PasswordError> {
        let answer = CredentialResponse::deserialize(answer).map_err(|_| PasswordError::Message)?;
        let parameters = ClientLoginFinishParameters::default();
        let password = self.password.as_bytes();
        let finished = self.state.finish(&mut Source(random), password, answer, parameters);
        let finished = finished.map_err(failed)?;
        let message = finished.message.serialize().to_vec();
        Ok((message, Zeroizing::new(finished.export_key.to_vec())))
    }
}

fn failed(error: ProtocolError) -> PasswordError {
    match error {
        ProtocolError::InvalidLoginError => PasswordError::Wrong,
        ProtocolError::LibraryError(InternalError::KsfError) => PasswordError::Memory,
        _ => PasswordError::Message,
    }
}
