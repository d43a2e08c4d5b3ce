//! Rows of when devices were last fully in sync.

use model::DeviceId;
use rusqlite::params;

use super::{Sqlite, bytes, signed};
use crate::metadata::device_syncs::IS_OPEN;
use crate::metadata::{AccountId, DeviceSyncTables, Result, UnsyncedDevice, WorkspaceNumber};

impl DeviceSyncTables for Sqlite {
    fn device_syncs(&self, account: AccountId) -> Result<Vec<(DeviceId, i64)>> {
        let sql = format!(
            "SELECT devices.id, min(synced)
                   FROM devices JOIN device_syncs ON device_syncs.device = devices.id
                   WHERE devices.account = ?1 AND {IS_OPEN}
                   GROUP BY devices.id ORDER BY devices.id"
        );
        self.all(&sql, [account.0], |row| Ok((DeviceId::from_bytes(bytes(row, 0)?), row.get(1)?)))
    }

    fn longest_unsynced(&self, limit: usize) -> Result<Vec<UnsyncedDevice>> {
        let sql = format!(
            "SELECT accounts.name, devices.id, devices.name,
                          coalesce(min(synced), devices.created) AS since
                   FROM devices JOIN accounts ON accounts.id = devices.account
                   LEFT JOIN tokens ON tokens.device = devices.id
                   LEFT JOIN device_syncs ON device_syncs.device = devices.id AND {IS_OPEN}
                   WHERE NOT devices.is_revoked AND NOT accounts.is_disabled AND scope IS NULL
                   GROUP BY accounts.name, devices.id, devices.name, devices.created
                   ORDER BY since, devices.id LIMIT ?1"
        );
        self.all(&sql, [signed(limit as u64)], |row| {
            Ok(UnsyncedDevice {
                account: row.get(0)?,
                id: DeviceId::from_bytes(bytes(row, 1)?),
                name: row.get(2)?,
                since: row.get(3)?,
            })
        })
    }

    fn note_sync(&mut self, device: DeviceId, workspace: WorkspaceNumber, now: i64) -> Result<()> {
        let sql = "INSERT INTO device_syncs (device, workspace, synced) VALUES (?1, ?2, ?3)
                   ON CONFLICT (device, workspace) DO UPDATE SET synced = excluded.synced";
        self.execute(sql, params![device.as_bytes(), workspace.0, now]).map(drop)
    }
}
