import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const heavy = (path: string) => fileURLToPath(new URL(`./test/storage/node_modules/${path}`, import.meta.url));
const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Examples and README blocks say `gen-client`, as users do; in tests that is the source.
    alias: [
      { find: /^gen-client$/, replacement: source('index.ts') },
      { find: /^gen-client\/([a-z-]+)$/, replacement: source('$1/index.ts') },
      // What the recipes import is installed for their tests only.
      { find: '@vercel/blob', replacement: heavy('@vercel/blob/dist/index.js') },
      { find: '@supabase/storage-js', replacement: heavy('@supabase/storage-js/dist/index.mjs') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/runtimes/**', '**/node_modules/**'],
    // Many tests wait for a process, a server or an engine: more of them than cores are run side by side.
    maxWorkers: 4,
    // On a busy machine of CI a test about time may be held up once.
    retry: process.env.CI ? 2 : 0,
    testTimeout: 20_000,
    hookTimeout: 120_000,
  },
});
