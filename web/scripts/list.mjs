// Writes what the built app consists of, in the form of `sha256sum`, so that a person can tell one app from another: by the app
// itself, by `syncline admin web-app`, or with `sha256sum --check files.txt` in this folder.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const LIST = 'files.txt';

const lines = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== LIST && !entry.name.endsWith('.gz'))
  .map((entry) =>
    join(entry.parentPath, entry.name)
      .slice(dist.length + 1)
      .replaceAll('\\', '/'),
  )
  .sort()
  .map((name) => {
    const hash = createHash('sha256')
      .update(readFileSync(join(dist, name)))
      .digest('hex');
    return `${hash}  ${name}\n`;
  });
writeFileSync(join(dist, LIST), lines.join(''));
