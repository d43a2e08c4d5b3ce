// `npm run screenshots`: takes the pictures of docs/guide/web.md from a server with files that this makes up.
import { defineConfig } from '@playwright/test';
import base from '../playwright.config.ts';

export default defineConfig({
  ...base,
  testDir: 'screenshots',
  outputDir: '../test-results',
  testMatch: '*.shots.ts',
});
