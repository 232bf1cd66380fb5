import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Examples and README blocks say `gen-client`, as users do; in tests that is the source.
    alias: [
      { find: /^gen-client$/, replacement: source('index.ts') },
      { find: /^gen-client\/([a-z-]+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/runtimes/**', '**/node_modules/**'],
    testTimeout: 20_000,
    hookTimeout: 120_000,
  },
});
