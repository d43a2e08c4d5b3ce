//! The half that keeps records.

use model::Random;
use opaque_ke::{
    CredentialFinalization, CredentialRequest, RegistrationRequest, RegistrationUpload,
    ServerLogin, ServerLoginParameters, ServerRegistration, ServerSetup,
};

use crate::{Login, PasswordError, Registration, Source, Suite};

/// The secret of a server, or of all that share a database: without it the records are worth nothing. Losing it loses all passwords.
pub struct Setup(ServerSetup<Suite>);

impl std::fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Setup(secret)")
    }
}

/// What a server keeps of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Record(ServerRegistration<Suite>);

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Record(secret)")
    }
}

/// A sign-in that has begun, at the server.
pub struct Attempt(ServerLogin<Suite>);

impl std::fmt::Debug for Attempt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Attempt(secret)")
    }
}

impl Setup {
    /// Makes a new one.
    pub fn generate(random: &dyn Random) -> Self {
        Self(ServerSetup::new(&mut Source(random)))
    }

    /// Reads what [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// [`PasswordError::Kept`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PasswordError> {
        ServerSetup::deserialize(bytes).map(Self).map_err(|_| PasswordError::Kept)
    }

    /// Returns its bytes, to be kept where nobody else reads them.
    pub fn to_bytes(&self) -> zeroize::Zeroizing<Vec<u8>> {
        zeroize::Zeroizing::new(self.0.serialize().to_vec())
    }

    /// Answers the first message of a registration. Nothing is kept.
    ///
    /// # Errors
    /// [`PasswordError::Message`].
    pub fn begin_registration(
        &self,
        account: &str,
        message: &[u8],
    ) -> Result<Vec<u8>, PasswordError> {
        let message =
            RegistrationRequest::deserialize(message).map_err(|_| PasswordError::Message)?;
        let started = ServerRegistration::<Suite>::start(&self.0, message, account.as_bytes());
        started.map(|one| one.message.serialize().to_vec()).map_err(|_| PasswordError::Message)
    }

    /// Answers the first message of a sign-in; without a record as if there were one.
    ///
    /// # Errors
    /// [`PasswordError::Message`].
    pub fn begin_login(
        &self,
        (account, record): (&str, Option<&Record>),
        message: &[u8],
        random: &dyn Random,
    ) -> Result<(Attempt, Vec<u8>), PasswordError> {
        let message =
            CredentialRequest::deserialize(message).map_err(|_| PasswordError::Message)?;
        let record = record.map(|record| record.0.clone());
        let (account, parameters) = (account.as_bytes(), ServerLoginParameters::default());
        let random = &mut Source(random);
        let started = ServerLogin::start(random, &self.0, record, message, account, parameters);
        let started = started.map_err(|_| PasswordError::Message)?;
        Ok((Attempt(started.state), started.message.serialize().to_vec()))
    }

    /// Makes the record of a password that the server was told: both halves run here. Takes as long as one Argon2id.
    ///
    /// # Errors
    /// [`PasswordError::Length`], [`PasswordError::Memory`].
    pub fn register(
        &self,
        account: &str,
        password: &str,
        random: &dyn Random,
    ) -> Result<Record, PasswordError> {
        let (client, message) = Registration::start(password, random)?;
        let answer = self.begin_registration(account, &message)?;
        let (message, _) = client.finish(&answer, random)?;
        Record::from_upload(&message)
    }

    /// Tells whether a password that the server was told is the one of a record; without a record it is not, in about the same time. Takes
    /// as long as one Argon2id.
    ///
    /// # Errors
    /// [`PasswordError::Length`], [`PasswordError::Memory`].
    pub fn verify(
        &self,
        account: (&str, Option<&Record>),
        password: &str,
        random: &dyn Random,
    ) -> Result<bool, PasswordError> {
        let (client, message) = Login::start(password, random)?;
        let (attempt, answer) = self.begin_login(account, &message, random)?;
        match client.finish(&answer, random) {
            Ok((message, _)) => Ok(attempt.finish(&message).is_ok()),
            Err(PasswordError::Wrong) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Record {
    /// Makes it of the last message of a registration.
    ///
    /// # Errors
    /// [`PasswordError::Message`].
    pub fn from_upload(message: &[u8]) -> Result<Self, PasswordError> {
        let upload =
            RegistrationUpload::deserialize(message).map_err(|_| PasswordError::Message)?;
        Ok(Self(ServerRegistration::finish(upload)))
    }

    /// Reads what [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// [`PasswordError::Kept`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PasswordError> {
        ServerRegistration::deserialize(bytes).map(Self).map_err(|_| PasswordError::Kept)
    }

    /// Returns its bytes. Whoever has them and the [`Setup`] can try passwords.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.serialize().to_vec()
    }
}

impl Attempt {
    /// Reads what [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// [`PasswordError::Kept`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PasswordError> {
        ServerLogin::deserialize(bytes).map(Self).map_err(|_| PasswordError::Kept)
    }

    /// Returns its bytes, which are secret: whoever has them can end the sign-in without the password.
    pub fn to_bytes(&self) -> zeroize::Zeroizing<Vec<u8>> {
        zeroize::Zeroizing::new(self.0.serialize().to_vec())
    }

    /// Takes the client's proof.
    ///
    /// # Errors
    /// [`PasswordError::Wrong`], [`PasswordError::Message`].
    pub fn finish(self, message: &[u8]) -> Result<(), PasswordError> {
        let message =
            CredentialFinalization::deserialize(message).map_err(|_| PasswordError::Message)?;
        let finished = self.0.finish(message, ServerLoginParameters::default());
        finished.map(drop).map_err(|_| PasswordError::Wrong)
    }
}
