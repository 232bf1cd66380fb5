// Size limits, each with its reason. Raise one only with a better reason.
import { build } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { sourceOf } from '../scripts/entry-points.js';
import { ensureBuilt, ROOT } from './support/build.js';

beforeAll(ensureBuilt, 180_000);

/**
 * Verifying a webhook alone: receivers on the edge pay for it at every cold start. standardwebhooks costs 4.9 kB. It was 2,740
 * bytes until API Gateway's base64 bodies, unknown signature schemes, and swapped arguments were handled.
 */
const WEBHOOK_BYTES = 2_950;
/**
 * A program that creates a video and waits for it, without a store. The aim was 72 kB. ky has 8.2 kB of it, zod 3.4, and
 * p-retry 1.5; the methods of every client have the rest: files by value 6.8, rate limits 4.5, preflight 3.3, downloads 2.3,
 * and webhooks 2.0.
 */
const CLIENT_BYTES = 73_700;
/** What a page adds to every visit. The smallest uploader of a peer alone costs 8 kB. */
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

/** A store brings the ledger, and since it also brings shared limits and notifications to clients, about 1 kB more. */
const REDIS_BYTES = 33_500;

/** The core is one file: what a program does not use of it must fall away. The client itself has about 74 kB. */
test.each([
  ['verifyWebhook of the main entry point', "export { verifyWebhook } from 'gen-client';", WEBHOOK_BYTES],
  ['toHttp', "export { toHttp } from 'gen-client';", 3_000],
  ['MODELS', "export { MODELS } from 'gen-client';", 1_000],
  ['a proxy beside its client', "export { createGenProxy } from 'gen-client/proxy';", 30_000],
  ['the store on Redis', "export { redisStore } from 'gen-client/redis';", REDIS_BYTES],
])('a program with only %s contains no client', async (_, code, most) => {
  const size = await bundleSize({ code, from: ROOT });
  expect(size).toBeGreaterThan(200);
  expect(size).toBeLessThanOrEqual(most);
});

/** The sources of this package, and its packages, that a program contains. */
async function inputsOf(code: string): Promise<string[]> {
  const alias = Object.fromEntries(
    ['', '/page', '/webhooks'].map((door) => [`gen-client${door}`, ROOT + sourceOf(door.slice(1) || 'index')] as const),
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
