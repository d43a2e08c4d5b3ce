//! Rows of links.

use model::{DeviceId, NodeId};
use tokio_postgres::Row;

use super::accounts::device;
use super::{Parameters, Postgres, bytes, signed, unsigned};
use crate::metadata::{AccountTables, LinkRecord, LinkTables, Result, WorkspaceNumber};

const LINK: &str = "SELECT devices.id, account, name, created, last_seen, is_revoked,
            scope, tokens.workspace, expires,
            node, password_hash, downloads_max, downloads
     FROM links
     JOIN devices ON devices.id = links.device
     JOIN tokens ON tokens.device = links.device";

fn link(row: &Row) -> Result<LinkRecord, tokio_postgres::Error> {
    let most: Option<i64> = row.try_get(11)?;
    Ok(LinkRecord {
        device: device(row)?,
        node: NodeId::from_bytes(bytes(row, 9)?),
        password_hash: row.try_get(10)?,
        downloads_max: most.map(|most| u64::try_from(most).unwrap_or(0)),
        downloads: unsigned(row, 12)?,
    })
}

impl LinkTables for Postgres {
    fn link_by_secret(&self, secret_hash: &[u8; 32]) -> Result<Option<LinkRecord>> {
        self.first(&format!("{LINK} WHERE token_hash = $1"), &[secret_hash], link)
    }

    fn link(&self, id: DeviceId) -> Result<Option<LinkRecord>> {
        self.first(&format!("{LINK} WHERE links.device = $1"), &[id.as_bytes()], link)
    }

    fn links(&self, workspace: WorkspaceNumber) -> Result<Vec<LinkRecord>> {
        let wanted = "WHERE links.workspace = $1 AND NOT is_revoked ORDER BY created, devices.id";
        self.all(&format!("{LINK} {wanted}"), &[&workspace.0], link)
    }

    fn insert_link(
        &mut self,
        link: &LinkRecord,
        workspace: WorkspaceNumber,
        secret_hash: &[u8; 32],
    ) -> Result<()> {
        self.insert_device(&link.device, secret_hash)?;
        let sql = "INSERT INTO links
                   (device, workspace, node, password_hash, downloads_max, downloads)
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let (most, downloads) = (link.downloads_max.map(signed), signed(link.downloads));
        let values: Parameters<'_> = &[
            link.device.id.as_bytes(),
            &workspace.0,
            link.node.as_bytes(),
            &link.password_hash,
            &most,
            &downloads,
        ];
        self.execute(sql, values).map(drop)
    }

    fn count_download(&mut self, id: DeviceId) -> Result<()> {
        let sql = "UPDATE links SET downloads = downloads + 1 WHERE device = $1";
        self.execute(sql, &[id.as_bytes()]).map(drop)
    }
}
