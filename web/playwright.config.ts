import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'browser',
  outputDir: 'test-results',
  // A file has a server of its own; its journeys come one after the other.
  fullyParallel: false,
  // Two files at once: half of the time a journey waits. Servers and browsers may share a busy machine: how long something takes fails no test.
  workers: 2,
  timeout: 180_000,
  expect: { timeout: 60_000 },
  // What fails once and passes then is named as flaky at the end: it is a fault, of a test or of the app, that waits for somebody.
  retries: 1,
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    locale: 'en-GB',
    launchOptions: {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
