import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  resolve: { conditions: ['browser'] },
  test: { include: ['app/**/*.test.ts', 'packages/**/*.test.ts', 'scripts/**/*.test.ts'] },
});
