//! The password of a gateway: made once, kept where only the user can read it.

use model::Random;
use model::environment::random_bytes;
use model::hex;

use crate::error::{CommandError, Result};
use crate::folder::Folder;
use crate::home::file_error;
use crate::sealed::read_secret;
use crate::system;

/// The shortest password that somebody may choose, in bytes: nothing slows down those who guess.
const LENGTH_MIN: usize = 16;

/// The file of the one that was made.
const FILE: &str = "gateway-password";

/// A password, and where it is kept.
pub(crate) struct Password {
    /// The password.
    pub(crate) text: String,
    /// The file that has it.
    pub(crate) file: std::path::PathBuf,
    /// Whether it was made just now.
    pub(crate) is_new: bool,
}

impl Password {
    /// Reads the one that somebody chose.
    ///
    /// # Errors
    /// [`crate::error::Code::Usage`] where it is too short; those of the file.
    pub(crate) fn chosen(file: &std::path::Path) -> Result<Self> {
        let text = read_secret(file)?.to_string();
        if text.len() < LENGTH_MIN {
            let headline = format!("the password in {} is too short", file.display());
            return Err(CommandError::usage(headline)
                .cause(format!("it has {} bytes, and {LENGTH_MIN} are needed", text.len()))
                .state("nothing was opened"));
        }
        Ok(Self { text, file: file.to_owned(), is_new: false })
    }

    /// Returns the one that was made for a folder; makes one where there is none, or a new one is wanted.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn of_folder(folder: &Folder, random: &dyn Random, wants_new: bool) -> Result<Self> {
        let file = folder.memory_file(FILE);
        let known = system::read_text(&file).map_err(|error| file_error(&file, &error))?;
        let known =
            known.map(|text| text.trim().to_owned()).filter(|text| text.len() >= LENGTH_MIN);
        if let Some(text) = known.filter(|_| !wants_new) {
            return Ok(Self { text, file, is_new: false });
        }
        let text = hex::encode(&random_bytes::<16>(random));
        system::write_private(&file, &format!("{text}\n"))
            .map_err(|error| file_error(&file, &error))?;
        Ok(Self { text, file, is_new: true })
    }
}
