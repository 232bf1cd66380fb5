// Ceilings. The reason stands beside each number: raise one only with a better reason.
import { beforeAll, expect, test } from 'vitest';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { ensureBuilt, ROOT } from './support/build.js';

beforeAll(ensureBuilt, 180_000);

/** A program with GenClient in one file, dependencies included. Edge platforms count the whole script; openai pays 86 kB. */
const CLIENT_BYTES = 63_000;
/** Checking a webhook alone: receivers on the edge pay it on every cold start; standardwebhooks costs 4.9 kB. */
const WEBHOOK_BYTES = 2_500;
/** What a copy adds to a program with a client: Workers copy to R2, and pay for it in their one script. */
const COPY_TO_R2_BYTES = 6_000;
/** Signing for S3 is a package of 2.6 kB, and only who copies to S3 pays for it. */
const COPY_TO_S3_BYTES = 7_700;

test('a program with a client fits in one file of 63 kB, gzipped', async () => {
  const size = await bundleSize({ code: OWN_PROGRAMS.client, from: ROOT });
  expect(size).toBeGreaterThan(10_000);
  expect(size).toBeLessThanOrEqual(CLIENT_BYTES);
});

test('checking a webhook fits in 2.5 kB, gzipped', async () => {
  const size = await bundleSize({ code: OWN_PROGRAMS.verifyWebhook, from: ROOT });
  expect(size).toBeGreaterThan(500);
  expect(size).toBeLessThanOrEqual(WEBHOOK_BYTES);
});

test.each([
  ['R2', OWN_PROGRAMS.copyToR2, COPY_TO_R2_BYTES],
  ['S3', OWN_PROGRAMS.copyToS3, COPY_TO_S3_BYTES],
])('copying a file to %s adds little to a program with a client, gzipped', async (_, program, ceiling) => {
  const client = await bundleSize({ code: OWN_PROGRAMS.client, from: ROOT });
  const added = (await bundleSize({ code: program, from: ROOT })) - client;
  expect(added).toBeGreaterThan(2_000);
  expect(added).toBeLessThanOrEqual(ceiling);
});
