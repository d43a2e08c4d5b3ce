// All that is checked without running the app, one after the other; what was found stands above the line that names the check.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('..', import.meta.url));

/** Licences that anybody may use, change and hand on, without conditions for what is beside them. */
const PERMISSIVE =
  /^\(?(MIT|MIT-0|ISC|Apache-2\.0|BSD-[23]-Clause|0BSD|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|Python-2\.0)( (OR|AND) [\w.-]+)*\)?$/;

/** Tools under the Mozilla Public License, which asks for changes of their own files: they run here, unchanged, and are no part of what is built. */
const MOZILLA_TOOLS = /^node_modules\/(axe-core|lightningcss(-[\w-]+)?)$/;

function findLicences() {
  const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
  const findings = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (!path.includes('node_modules/') || entry.link) continue;
    const isKnown =
      PERMISSIVE.test(entry.license ?? '') ||
      (entry.license === 'MPL-2.0' && entry.dev && MOZILLA_TOOLS.test(path));
    if (!isKnown) findings.push(`${path}: licence ${entry.license}`);
    const isPublic = !entry.resolved || entry.resolved.startsWith('https://registry.npmjs.org/');
    if (!isPublic) findings.push(`${path}: comes from ${entry.resolved}`);
  }
  return findings;
}

/** @type {[string, string[]][]} */
const CHECKS = [
  ['types of the API', ['node', 'packages/api/generate.mjs', '--check']],
  ['TypeScript', ['tsc', '--project', '.']],
  [
    'Svelte',
    ['svelte-check', '--tsconfig', './tsconfig.json', '--fail-on-warnings', '--output', 'human'],
  ],
  ['eslint', ['eslint', '--max-warnings', '0', '.']],
  ['prettier', ['prettier', '--check', '--log-level', 'warn', '.']],
];

let hasFailed = false;

/** @param {string} name @param {boolean} isFine @param {number} began */
function report(name, isFine, began) {
  hasFailed ||= !isFine;
  console.log(
    `${isFine ? 'ok    ' : 'FAILED'} ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`,
  );
}

for (const [name, [program = '', ...options]] of CHECKS) {
  const began = Date.now();
  const path = `${web}/node_modules/.bin:${process.env['PATH']}`;
  const run = spawnSync(program, options, {
    cwd: web,
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  });
  if (run.status !== 0) console.log(`${run.stdout ?? ''}${run.stderr ?? ''}${run.error ?? ''}`);
  report(name, run.status === 0, began);
}
const began = Date.now();
const findings = findLicences();
for (const finding of findings) console.log(finding);
report('licences', findings.length === 0, began);
process.exit(hasFailed ? 1 : 0);
