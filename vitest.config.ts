import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ClaimReporter } from './test/support/claim-reporter.js';
import { SlowFirst } from './test/support/order.js';
import { PATIENCE_MS } from './test/support/patience.js';
import { SkipReporter } from './test/support/skip-reporter.js';

const heavy = (path: string) => fileURLToPath(new URL(`./test/storage/node_modules/${path}`, import.meta.url));
const app = (path: string) => fileURLToPath(new URL(`./test/apps/node_modules/${path}`, import.meta.url));
const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** tRPC, MCP, and model providers are installed in `test/apps` only. In CI they must be there. */
const hasApps = process.env.CI !== undefined || existsSync(new URL('./test/apps/node_modules/', import.meta.url));
const skipped = hasApps ? [] : ['jsdom', 'rpc', 'tool-bodies'].map((name) => `test/apps/${name}.test.ts`);
if (!hasApps) console.warn(`skipped: ${skipped.join(', ')} (npm ci --prefix test/apps)`);

/** The oldest BullMQ of the peer range, which has a folder of its own. In CI it must be there. */
const oldestBull = fileURLToPath(
  new URL('./test/bullmq/oldest/node_modules/bullmq/dist/esm/index.js', import.meta.url),
);
const onOldestBull = {
  extends: true as const,
  resolve: { alias: [{ find: /^bullmq$/, replacement: oldestBull }] },
  test: { name: 'oldest BullMQ', include: ['test/bullmq/{outages,paid-once,records}.test.ts'], isolate: false },
};

/**
 * They measure the memory of their process, change its folder, reload modules, or need that no other create is in flight, so each
 * has a process of its own. All others share one per worker, because loading the sources again costs more than a second of a core.
 */
const alone = ['test/{documented-code,apps/ai-tools,events/job-events,events/memory}.test.ts'];
const realAlone = ['test/{cloudflare/gen-account,readme/stores-and-engines,store/finished-job}.test.ts'];
const exclude = ['test/runtimes/**', '**/node_modules/**', ...skipped];

/** They need the built package, a server, a browser, or an engine, or are part of `npm run check`: `npm run test:real`. */
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
    // Examples and README blocks say `gen-client`, as users do; in tests that is the source.
    alias: [
      { find: /^gen-client$/, replacement: source('index.ts') },
      { find: /^gen-client\/(sandbox|webhooks)$/, replacement: source('$1/index.ts') },
      { find: /^gen-client\/([a-z-]+)$/, replacement: source('adapters/$1/index.ts') },
      // What the recipes import is installed for their tests only.
      { find: '@vercel/blob', replacement: heavy('@vercel/blob/dist/index.js') },
      { find: '@supabase/storage-js', replacement: heavy('@supabase/storage-js/dist/index.mjs') },
      { find: /^@trpc\/server$/, replacement: app('@trpc/server/dist/index.mjs') },
      { find: /^@modelcontextprotocol\/sdk\/(.+)$/, replacement: app('@modelcontextprotocol/sdk/dist/esm/$1') },
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
    // Many tests wait for a process, a server or an engine: more of them than cores are run side by side.
    maxWorkers: 4,
    setupFiles: ['test/support/watchdog.ts'],
    expect: { poll: { timeout: PATIENCE_MS } },
    // Ten times what the slowest of them takes, so that they pass on a machine ten times as slow.
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
