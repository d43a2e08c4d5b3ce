//! `deltas` in `config.toml`: how much work may be done so that edits cost little, for the device or for one workspace.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use sync::DeltaBudget;

const MIB: u64 = 1024 * 1024;

/// Up to how many MiB at once new files can be inflated: where more come, those that are edited are not either.
const MIB_MAX: u64 = 64;

/// `true`, `false`, or up to how many MiB that come at once new files are inflated, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeltaSetting(pub(crate) DeltaBudget);

impl<'de> Deserialize<'de> for DeltaSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = DeltaSetting;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "true, false, or from 0 to {MIB_MAX} MiB")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<DeltaSetting, E> {
        Ok(DeltaSetting(if is_on { DeltaBudget::default() } else { DeltaBudget::Off }))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<DeltaSetting, E> {
        let mib = u64::try_from(number).ok().filter(|&mib| mib <= MIB_MAX);
        let mib = mib.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))?;
        Ok(DeltaSetting(DeltaBudget::UpTo(mib * MIB)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Config;

    fn config(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn what_is_set_for_a_workspace_counts_there_and_else_what_is_set_for_the_device() {
        let two =
            config("deltas = 20\n[workspaces.photos]\ndeltas = false\n[workspaces.\"my notes\"]\n");
        let two = two.unwrap();
        let budgets = ["photos", "my notes", "others"].map(|name| two.delta_budget(name));
        let of_device = DeltaBudget::UpTo(20 * MIB);
        assert_eq!(budgets, [DeltaBudget::Off, of_device, of_device]);
        let off = config("deltas = false\n[workspaces.notes]\ndeltas = true\n").unwrap();
        assert_eq!(off.delta_budget("notes"), DeltaBudget::default());
        assert_eq!(off.delta_budget("photos"), DeltaBudget::Off);
        assert_eq!(config("").unwrap().delta_budget("notes"), DeltaBudget::default());
    }

    #[test]
    fn what_makes_no_sense_is_said_with_what_would() {
        for wrong in ["deltas = 65", "deltas = -1", "deltas = \"much\"", "deltas = 1.5"] {
            let said = config(wrong).unwrap_err();
            assert!(said.contains("true, false, or from 0 to 64 MiB"), "{wrong}: {said}");
        }
        let said = config("[workspaces.notes]\ndelta = true\n").unwrap_err();
        assert!(said.contains("unknown field `delta`"), "{said}");
    }
}
