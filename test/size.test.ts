// Size ceilings. The reason stands beside each number: raise one only with a better reason.
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { BASE, importTimes, MOST_TIMES_BASE, OWN } from '../bench/cold-start.js';
import { ratio } from '../bench/frame.js';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { ensureBuilt, packTarball, ROOT } from './support/build.js';

const DIST = join(ROOT, 'dist');

beforeAll(ensureBuilt, 180_000);

/**
 * A worker that creates and waits, in gzipped bytes: all that those calls load of the published files, zod and p-retry included.
 * ky comes with the first file that is sent. runway pays 11, fal 20, stripe 33, openai 86.
 */
const CLIENT_BYTES = 24_000;
/** Checking a webhook alone, in gzipped bytes: receivers on the edge pay it on every cold start; standardwebhooks costs 4.9 kB. */
const WEBHOOK_BYTES = 2_500;
/** All that a compiler and an editor read of the seven doors, doc comments included: a project's type check stays under a second. */
const DECLARATION_BYTES = 60_000;
/** Unpacked, without the sandbox's door: what every install has to copy. */
const UNPACKED_BYTES = 1_500_000;

test('a client that creates and waits fits in 24 kB on the edge', async () => {
  const { own } = await bundleSize({ code: OWN_PROGRAMS.client, from: ROOT });
  expect(own).toBeGreaterThan(10_000);
  expect(own).toBeLessThanOrEqual(CLIENT_BYTES);
});

test('importing the package takes no longer than importing ky and zod/mini', async () => {
  const figures = await importTimes(9);
  expect(ratio(figures, OWN, BASE).median).toBeLessThanOrEqual(MOST_TIMES_BASE);
}, 60_000);

test('checking a webhook fits in 2.5 kB', async () => {
  const { own, others } = await bundleSize({ code: OWN_PROGRAMS.verifyWebhook, from: ROOT });
  expect(own).toBeGreaterThan(500);
  expect(own + others).toBeLessThanOrEqual(WEBHOOK_BYTES);
});

test('the declarations of all doors fit in 60 kB, with their comments', () => {
  const declarations = readdirSync(DIST).filter((file) => /\.d\.[cm]?ts$/.test(file));
  const sizes = declarations.map((file) => statSync(join(DIST, file)).size);
  const size = sizes.reduce((total, bytes) => total + bytes, 0);
  expect(size).toBeGreaterThan(10_000);
  expect(size).toBeLessThanOrEqual(DECLARATION_BYTES);
});

test('the package without the sandbox unpacks to 1.5 MB at most', async () => {
  const tarball = await packTarball();
  const listed = execFileSync('tar', ['-tvzf', tarball], { encoding: 'utf8' }).trim().split('\n');
  const files = listed
    .map((line) => line.trim().split(/\s+/))
    .map((cells) => ({ size: Number(cells[2]), name: cells[5] ?? '' }));
  const rest = files.filter(({ name }) => !name.startsWith('package/dist/sandbox'));
  expect(rest.length).toBeLessThan(files.length);
  const size = rest.reduce((total, file) => total + file.size, 0);
  expect(size).toBeGreaterThan(50_000);
  expect(size).toBeLessThanOrEqual(UNPACKED_BYTES);
});
