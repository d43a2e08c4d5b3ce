import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['**/dist/', '**/node_modules/', 'test-results/'] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
  {
    rules: {
      // TypeScript knows which names there are.
      'no-undef': 'off',
      'max-lines': ['error', 300],
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
      // Sets and maps here are replaced, not changed in place.
      'svelte/prefer-svelte-reactivity': 'off',
      'svelte/no-at-html-tags': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
    },
  },
  {
    files: ['**/*.test.ts', 'browser/**'],
    rules: { 'max-lines-per-function': 'off', 'max-lines': ['error', 400] },
  },
  { files: ['packages/api/src/schema.ts'], rules: { 'max-lines': 'off' } },
);
