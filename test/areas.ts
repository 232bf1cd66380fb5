// `npm run area -- uploading bullmq`: runs the tests of these folders of `src`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The tests of each folder of `src`, as paths below `test`; those of an adapter stand in the folder of its name. */
export const AREAS: Readonly<Record<string, readonly string[]>> = {
  'ai-sdk': ['ai-sdk', 'cost'],
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
  page: ['page', 'proxy', 'react'],
  proxy: ['proxy', 'page'],
  react: ['react', 'page'],
  redis: ['redis', 'shared'],
  rules: ['rules', 'catalog', 'limits', 'budget', 'files', 'waiting', 'worlds'],
  runtime: ['transport', 'waiting', 'files'],
  sandbox: ['sandbox', 'sandbox-doors', 'catalog'],
  schemas: ['catalog', 'types', 'apps'],
  storage: ['storage', 'files'],
  store: ['store', 'shared', 'limits', 'budget', 'redis'],
  transport: ['transport', 'errors', 'events', 'limits', 'budget', 'files', 'catalog'],
  uploading: ['files', 'errors', 'catalog'],
  waiting: ['waiting', 'events', 'webhooks'],
  webhooks: ['webhooks', 'receivers', 'handler-calls.test.ts'],
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2);
  if (asked.length === 0 || asked.some((name) => AREAS[name] === undefined)) {
    process.stderr.write(`usage: npm run area -- AREA…, where an area is one of ${Object.keys(AREAS).join(', ')}\n`);
    process.exit(2);
  }
  const folders = new Set(asked.flatMap((name) => AREAS[name] ?? []));
  const paths = [...folders].map((name) => `test/${name}${name.endsWith('.ts') ? '' : '/'}`);
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  process.exitCode = spawnSync(process.execPath, [vitest, 'run', ...paths], { stdio: 'inherit' }).status ?? 1;
}
