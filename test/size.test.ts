// Size limits, each with its reason. Raise one only with a better reason.
import { build } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { sourceOf } from '../scripts/entry-points.js';
import { ensureBuilt, ROOT } from './support/build.js';

beforeAll(ensureBuilt, 180_000);

/** Verification alone, because edge receivers load it at every cold start. For comparison, standardwebhooks has 4.9 kB. */
const WEBHOOK_BYTES = 2_950;
/**
 * A program that creates a video and waits for it, without a store. ky takes 8.2 kB of it, files by value 6.8, rate limits 4.5,
 * zod 3.4, preflight 3.3, downloads 2.3, webhooks 2.0, and p-retry 1.5.
 */
const CLIENT_BYTES = 73_700;
/** The page entry point, which every visitor loads. For comparison, the smallest uploader of a similar package has 8 kB. */
const PAGE_BYTES = 2_780;

test.each([
  [
    'GenClient',
    OWN_PROGRAMS.client,
    [
      'src/ledger',
      'src/store/groups',
      'shared-limits',
      'shared-notifications',
      'file-store',
      'otel',
      'storage',
      'proxy',
      'page',
      'sandbox',
      'bullmq',
      'durable',
    ],
  ],
  ['a page', OWN_PROGRAMS.page, ['client', 'transport', 'errors', 'proxy', 'storage', 'zod', 'ky']],
])("a program with %s contains no code that it doesn't use", async (_, code, absent) => {
  const inputs = await inputsOf(code);
  expect(inputs.length).toBeGreaterThan(1);
  expect(inputs.filter((path) => absent.some((part) => new RegExp(`(^|/)${part}(/|\\.ts$)`).test(path)))).toEqual([]);
});

test('a program that creates and waits fits in 73.7 kB, gzipped', async () => {
  const size = await bundleSize({ code: OWN_PROGRAMS.client, from: ROOT });
  expect(size).toBeGreaterThan(40_000);
  expect(size).toBeLessThanOrEqual(CLIENT_BYTES);
});

test('the page entry point fits in 2.8 kB, gzipped, because every visitor pays for it', async () => {
  const size = await bundleSize({ code: OWN_PROGRAMS.page, from: ROOT });
  expect(size).toBeGreaterThan(1_000);
  expect(size).toBeLessThanOrEqual(PAGE_BYTES);
});

test('verifying a webhook fits in 3 kB, gzipped', async () => {
  const size = await bundleSize({ code: OWN_PROGRAMS.verifyWebhook, from: ROOT });
  expect(size).toBeGreaterThan(500);
  expect(size).toBeLessThanOrEqual(WEBHOOK_BYTES);
});

/** A store includes the ledger, shared limits, and notifications. */
const REDIS_BYTES = 33_500;

/** Bundlers must drop the unused parts of the core, which is one file. The entire client has about 74 kB. */
test.each([
  ['verifyWebhook of the main entry point', "export { verifyWebhook } from 'gen-client';", WEBHOOK_BYTES],
  ['toHttp', "export { toHttp } from 'gen-client';", 3_000],
  ['MODELS', "export { MODELS } from 'gen-client';", 1_000],
  ['a proxy', "export { createGenProxy } from 'gen-client/proxy';", 30_000],
  ['a Redis store', "export { redisStore } from 'gen-client/redis';", REDIS_BYTES],
])('a program with only %s contains no client', async (_, code, maxBytes) => {
  const size = await bundleSize({ code, from: ROOT });
  expect(size).toBeGreaterThan(200);
  expect(size).toBeLessThanOrEqual(maxBytes);
});

/** Returns the sources and packages that a program contains. */
async function inputsOf(code: string): Promise<string[]> {
  const alias = Object.fromEntries(
    ['', '/page', '/webhooks'].map((path) => [`gen-client${path}`, ROOT + sourceOf(path.slice(1) || 'index')] as const),
  );
  const { metafile } = await build({
    stdin: { contents: code, resolveDir: ROOT },
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    external: ['node:*'],
    alias,
  });
  const [output] = Object.values(metafile.outputs);
  return Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
}
