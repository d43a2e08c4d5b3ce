//! How a device is let into a sealed workspace by a code, from either side: [`content::pairing`] is the protocol, this lets a browser speak it.
//!
//! *Goals*: a browser pairs with a browser as with the program; the account key, which a host needs to vouch for a guest, is opened for
//! one pairing and overwritten when something was granted. *Non-goals*: to carry boxes, which the page does.

use std::sync::Arc;

use content::Unlocked;
use content::pairing::{Offer, PATIENCE_SECONDS, Pairing, PairingCode, PairingRequest};
use model::{Genesis, Random};
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::sealed_workspace::{CONTEXT, SealedWorkspace, device_of, genesis_of, shortened, unlock};
use crate::seeded::Seeded;

/// Reads a code as it was typed, and returns the name under which its boxes lie.
///
/// # Errors
/// `pairing_code`.
#[wasm_bindgen(js_name = "pairingName")]
pub fn pairing_name(code: String) -> Result<String, Failure> {
    Ok(code_of(code)?.name())
}

/// Returns how long one side waits for the other, in seconds.
#[wasm_bindgen(js_name = "pairingSeconds")]
pub fn pairing_seconds() -> f64 {
    PATIENCE_SECONDS as f64
}

/// A browser that asks to be let in.
#[wasm_bindgen]
pub struct PairingGuest {
    asking: content::pairing::PairingGuest,
    genesis: Genesis,
    host: String,
    device_name: String,
    random: Arc<dyn Random>,
}

#[wasm_bindgen]
impl PairingGuest {
    /// Answers an offer: `id` is the workspace that is to be opened, `genesis` and `offer` are what the server gave of it; the rest is as of
    /// [`SealedWorkspace::new`].
    ///
    /// # Errors
    /// `pairing_code`, `wrong_workspace`, `message`, `length`; `wrong_key` where the offer is not one of this code in this workspace.
    #[wasm_bindgen(constructor)]
    pub fn new(
        id: &str,
        genesis: &[u8],
        code: String,
        offer: &[u8],
        device: &str,
        device_name: &str,
        seed: &[u8],
    ) -> Result<Self, Failure> {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(CONTEXT, seed)?);
        let genesis = genesis_of(id, genesis)?;
        let pairing = Pairing::new(&code_of(code)?, genesis.workspace());
        let host = pairing.open_offer(offer)?.device_name;
        let device_name = shortened(device_name).to_owned();
        let me = (device_of(device)?, device_name.clone());
        let asking = content::pairing::PairingGuest::new(pairing, offer, me, &*random)?;
        Ok(Self { asking, genesis, host, device_name, random })
    }

    /// Returns how the host calls itself.
    pub fn host(&self) -> String {
        self.host.clone()
    }

    /// Returns the six digits that the host shows, too.
    pub fn digits(&self) -> String {
        self.asking.digits().to_owned()
    }

    /// Returns the box to put.
    pub fn request(&self) -> Vec<u8> {
        self.asking.request().to_vec()
    }

    /// Takes what was granted, and opens the workspace by it.
    ///
    /// # Errors
    /// `wrong_key` where the owner of the workspace has not given it to this browser.
    pub fn accept(&self, grant: &[u8]) -> Result<SealedWorkspace, Failure> {
        let keys = self.asking.accept(&self.genesis, grant)?;
        let random = Arc::clone(&self.random);
        SealedWorkspace::open(&self.genesis, keys, &self.device_name, random, None)
    }
}

/// Who asks to be let in.
#[wasm_bindgen(getter_with_clone)]
pub struct PairingAsked {
    /// How the guest calls itself.
    #[wasm_bindgen(js_name = "deviceName")]
    pub device_name: String,
    /// The six digits that the guest shows, too.
    pub digits: String,
}

/// A browser that lets a device in.
#[wasm_bindgen]
pub struct PairingHost {
    code: PairingCode,
    pairing: Pairing,
    genesis: Genesis,
    offer: Vec<u8>,
    asked: Option<(PairingRequest, Vec<u8>)>,
    /// Until something was granted.
    unlocked: Option<Unlocked>,
    random: Arc<dyn Random>,
}

#[wasm_bindgen]
impl PairingHost {
    /// Opens the account key of a workspace by its passphrase or recovery key, and makes a code. The arguments are those of
    /// [`SealedWorkspace::new`], without the device.
    ///
    /// # Errors
    /// Those of [`SealedWorkspace::new`].
    #[wasm_bindgen(constructor)]
    pub fn new(
        id: &str,
        genesis: &[u8],
        generation: f64,
        keys: &[u8],
        secret: String,
        device_name: &str,
        seed: &[u8],
    ) -> Result<Self, Failure> {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(CONTEXT, seed)?);
        let (genesis, unlocked) = unlock(id, genesis, (generation, keys), secret)?;
        let code = PairingCode::random(&*random);
        let pairing = Pairing::new(&code, genesis.workspace());
        let device_name = shortened(device_name).to_owned();
        let offer = pairing.seal_offer(&Offer { device_name }, &*random);
        let unlocked = Some(unlocked);
        Ok(Self { code, pairing, genesis, offer, asked: None, unlocked, random })
    }

    /// Returns the code to show.
    pub fn code(&self) -> String {
        self.code.to_text().to_string()
    }

    /// Returns the name under which the boxes lie.
    pub fn name(&self) -> String {
        self.code.name()
    }

    /// Returns the box to put.
    pub fn offer(&self) -> Vec<u8> {
        self.offer.clone()
    }

    /// Takes a request, and says whose it is. The first one that opens counts.
    ///
    /// # Errors
    /// `wrong_key` where it does not answer this offer; `pairing_used` where another one does.
    pub fn ask(&mut self, request: &[u8]) -> Result<PairingAsked, Failure> {
        let opened = self.pairing.open_request(&self.offer, request)?;
        if self.asked.as_ref().is_some_and(|(_, first)| first != request) {
            return Err(Failure::of("pairing_used", "the code was used by another device"));
        }
        let device_name = opened.device_name.clone();
        self.asked = Some((opened, request.to_vec()));
        Ok(PairingAsked { device_name, digits: self.pairing.digits(&self.offer, request) })
    }

    /// Makes the device that has asked one of the workspace's, and returns the box to put. Nothing can be granted after that: the account
    /// key is overwritten.
    ///
    /// # Errors
    /// `no_such` where nobody has asked, or something was granted.
    pub fn grant(&mut self) -> Result<Vec<u8>, Failure> {
        let no_such = || Failure::of("no_such", "nobody asks to be let in");
        let (request, sealed) = self.asked.as_ref().ok_or_else(no_such)?;
        let unlocked = self.unlocked.take().ok_or_else(no_such)?;
        Ok(self.pairing.grant(&self.genesis, &unlocked, (request, sealed), &*self.random)?)
    }
}

fn code_of(text: String) -> Result<PairingCode, Failure> {
    let text = Zeroizing::new(text);
    PairingCode::from_text(&text).map_err(|error| Failure::of("pairing_code", &error.to_string()))
}

#[cfg(test)]
mod tests;
