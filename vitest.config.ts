import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ClaimReporter } from './test/support/claim-reporter.js';
import { SlowFirst } from './test/support/order.js';
import { PATIENCE_MS } from './test/support/patience.js';
import { SkipReporter } from './test/support/skip-reporter.js';

const storagePackage = (path: string) => fileURLToPath(new URL(`./test/storage/node_modules/${path}`, import.meta.url));
const appPackage = (path: string) => fileURLToPath(new URL(`./test/apps/node_modules/${path}`, import.meta.url));
const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** tRPC, MCP, and model providers are installed in `test/apps` only. CI requires them. */
const hasApps = process.env.CI !== undefined || existsSync(new URL('./test/apps/node_modules/', import.meta.url));
const skipped = hasApps ? [] : ['jsdom', 'rpc', 'tool-bodies'].map((name) => `test/apps/${name}.test.ts`);
if (!hasApps) console.warn(`skipped: ${skipped.join(', ')} (npm ci --prefix test/apps)`);

/** The oldest supported BullMQ, installed in its own folder. CI requires it. */
const oldestBull = fileURLToPath(
  new URL('./test/bullmq/oldest/node_modules/bullmq/dist/esm/index.js', import.meta.url),
);
const onOldestBull = {
  extends: true as const,
  resolve: { alias: [{ find: /^bullmq$/, replacement: oldestBull }] },
  test: { name: 'oldest BullMQ', include: ['test/bullmq/{outages,paid-once,records}.test.ts'], isolate: false },
};

/**
 * Tests with their own process: they measure memory, change the working directory, reload modules, or require that no other
 * create is in flight. The others share one process per worker, because loading the sources takes more than a second.
 */
const alone = ['test/{documented-code,apps/ai-tools,events/job-events,events/memory}.test.ts'];
const realAlone = ['test/{cloudflare/gen-account,readme/stores-and-engines,store/finished-job}.test.ts'];
const exclude = ['test/runtimes/**', '**/node_modules/**', ...skipped];

/** Tests that need the built package, a server, a browser, or an engine, and tests of the types: `npm run test:real`. */
const real = [
  'test/{bullmq,cloudflare,redis,site}/*.test.ts',
  'test/durable/{*/*,example-types}.test.ts',
  'test/{examples,package,package-consumer,package-entry-types,regular-expressions,size,types}.test.ts',
  'test/{apps/jsdom,apps/rpc,apps/tool-bodies,budget/recipes,budget/redis,cli/batch-crashes,cli/terminal,page/chromium*}.test.ts',
  'test/{readme/stores-and-engines,webhooks/receivers,worlds/kills}.test.ts',
  'test/sandbox-server/{browser-upload,page}.test.ts',
  'test/storage/{azurite,browser,campaign,limits,r2,recipes,runtimes}.test.ts',
  'test/shared/real-stores.test.ts',
  'test/store/{crashes,finished-job,shared-file}.test.ts',
  'test/events/charges-of-processes.test.ts',
];

function project(name: string, include: readonly string[], others: readonly string[] = []) {
  const isolate = name.endsWith('alone');
  return { extends: true as const, test: { name, include: [...include], exclude: [...exclude, ...others], isolate } };
}

export default defineConfig({
  resolve: {
    // Examples and documented code import `gen-client`, which is the source in tests.
    alias: [
      { find: /^gen-client$/, replacement: source('index.ts') },
      { find: /^gen-client\/(sandbox|webhooks)$/, replacement: source('$1/index.ts') },
      { find: /^gen-client\/([a-z-]+)$/, replacement: source('adapters/$1/index.ts') },
      // Packages of the recipes, which are installed in test folders.
      { find: '@vercel/blob', replacement: storagePackage('@vercel/blob/dist/index.js') },
      { find: '@supabase/storage-js', replacement: storagePackage('@supabase/storage-js/dist/index.mjs') },
      { find: /^@trpc\/server$/, replacement: appPackage('@trpc/server/dist/index.mjs') },
      { find: /^@modelcontextprotocol\/sdk\/(.+)$/, replacement: appPackage('@modelcontextprotocol/sdk/dist/esm/$1') },
    ],
  },
  test: {
    projects: [
      project('alone', alone),
      project('shared', ['test/**/*.test.ts'], [...alone, ...realAlone, ...real]),
      project('real', real, realAlone),
      project('real alone', realAlone),
      ...(process.env.CI !== undefined || existsSync(oldestBull) ? [onOldestBull] : []),
    ],
    sequence: { sequencer: SlowFirst },
    reporters: ['default', new SkipReporter(), new ClaimReporter()],
    // More workers than cores, because many tests wait for a process, a server, or an engine.
    maxWorkers: 4,
    setupFiles: ['test/support/watchdog.ts'],
    expect: { poll: { timeout: PATIENCE_MS } },
    // Ten times the slowest test's duration, so that tests pass on slow machines.
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
