// Lets Lighthouse (Apache-2.0) look at the first page of a server: `npm run lighthouse -- http://127.0.0.1:8470`. It is fetched when it is
// asked for, is no part of the app or its tests, and asks for a newer Node.js than the app: 22.19.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = '13.5.0';
/** What both scores are to be at least, of a hundred. */
const AIM = 95;
const CATEGORIES = ['performance', 'accessibility'];
const AUDITS = [
  'first-contentful-paint',
  'largest-contentful-paint',
  'total-blocking-time',
  'cumulative-layout-shift',
];

const [address] = process.argv.slice(2);
if (!address) {
  console.error('usage: npm run lighthouse -- ADDRESS');
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'syncline-lighthouse-'));
const report = join(folder, 'report.json');
const words = ['--yes', `lighthouse@${VERSION}`, address, '--quiet', '--output=json'];
words.push(`--output-path=${report}`, `--only-categories=${CATEGORIES.join(',')}`);
words.push('--chrome-flags=--headless=new --no-sandbox', '--no-enable-error-reporting');
try {
  const env = { ...process.env, CHROME_PATH: process.env['CHROMIUM'] ?? '/usr/bin/chromium' };
  const { status } = spawnSync('npx', words, { stdio: ['ignore', 'inherit', 'inherit'], env });
  if (status !== 0) throw new Error('Lighthouse did not come to its end');
  const { categories, audits, runtimeError } = JSON.parse(readFileSync(report, 'utf8'));
  if (runtimeError) throw new Error(runtimeError.message);
  for (const name of AUDITS) console.log(`${audits[name].title}: ${audits[name].displayValue}`);
  for (const name of CATEGORIES) {
    const score = Math.round(100 * categories[name].score);
    console.log(
      `${categories[name].title}: ${score} of 100${score < AIM ? `, less than ${AIM}` : ''}`,
    );
    if (score < AIM) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
