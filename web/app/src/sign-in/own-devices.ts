// Which devices are those of whoever has signed in.

import type { SynclineClient } from '@syncline/api';

/** Their ids; none where the server cannot be asked: then nobody is called by anything but the name of the device. */
export async function ownDevices(client: SynclineClient): Promise<ReadonlySet<string>> {
  const devices = await client.call('GET /devices').catch(() => []);
  return new Set(devices.map(({ id }) => id));
}
