// `npm run area -- uploading bullmq`: runs the tests of these `src` folders.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROOT } from './support/build.js';

/** The test folders of each `src` folder. Other adapters' tests are in the folder of the same name. */
const AREAS: Readonly<Record<string, readonly string[]>> = {
  'ai-sdk': ['ai-sdk'],
  bullmq: ['bullmq', 'worlds'],
  catalog: ['catalog', 'types'],
  cli: ['cli', 'store', 'receivers'],
  client: ['catalog', 'errors', 'files', 'transport', 'waiting', 'store', 'types'],
  cloudflare: ['cloudflare', 'shared'],
  downloading: ['files', 'storage'],
  durable: ['durable', 'apps', 'replay'],
  errors: ['errors', 'handler-calls.test.ts'],
  ledger: ['budget', 'store', 'shared', 'rules', 'worlds'],
  node: ['files', 'store', 'receivers'],
  otel: ['otel', 'events'],
  page: ['page', 'proxy'],
  proxy: ['proxy', 'page'],
  react: ['page'],
  redis: ['redis', 'shared'],
  rules: ['rules', 'catalog', 'limits', 'budget', 'files', 'waiting', 'worlds'],
  runtime: ['transport', 'waiting', 'files'],
  sandbox: ['sandbox', 'sandbox-server', 'catalog'],
  schemas: ['catalog', 'types', 'apps'],
  storage: ['storage', 'files'],
  store: ['store', 'shared', 'limits', 'budget', 'redis'],
  transport: ['transport', 'errors', 'events', 'limits', 'budget', 'files', 'catalog'],
  uploading: ['files', 'errors', 'catalog'],
  waiting: ['waiting', 'events', 'webhooks'],
  webhooks: ['webhooks', 'receivers', 'handler-calls.test.ts'],
};

/** Returns the test paths of a `src` folder. */
export function testsOf(area: string): string[] {
  return (AREAS[area] ?? [area]).map((name) => `test/${name}`);
}

/** Returns the folders of `src` and its adapters. */
export function areas(): string[] {
  const folders = readdirSync(`${ROOT}src`).map((name) => name.replace('.ts', ''));
  return [...folders, ...readdirSync(`${ROOT}src/adapters`)].filter((name) => !/^(adapters|index)$/.test(name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const requested = process.argv.slice(2);
  if (requested.length === 0 || requested.some((name) => !areas().includes(name))) {
    process.stderr.write(`usage: npm run area -- AREA…, where an area is one of ${areas().join(', ')}\n`);
    process.exit(2);
  }
  const vitest = [`${ROOT}node_modules/vitest/vitest.mjs`, 'run', ...new Set(requested.flatMap(testsOf))];
  process.exitCode = spawnSync(process.execPath, vitest, { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}
