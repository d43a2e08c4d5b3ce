// Puts beside each text of the built app, and the core, what it is compressed, so that a server need not do it again for everybody who asks.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const dist = fileURLToPath(new URL('../dist', import.meta.url));

for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(css|html|js|svg|wasm)$/.test(name)) continue;
  const content = readFileSync(join(dist, name));
  const packed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
  if (packed.length < content.length) writeFileSync(join(dist, `${name}.gz`), packed);
}
