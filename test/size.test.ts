// Size ceilings. The reason stands beside each number: raise one only with a better reason.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { ensureBuilt, packTarball, ROOT } from './support/build.js';

const DIST = join(ROOT, 'dist');

beforeAll(ensureBuilt, 180_000);

/** A worker that creates and waits, in gzipped bytes: ky and p-retry are 10.7 kB of it; fal pays 20, stripe 33, openai 86. */
const CLIENT_BYTES = 24_000;
/** Checking a webhook alone, in gzipped bytes: receivers on the edge pay it on every cold start; standardwebhooks costs 4.9 kB. */
const WEBHOOK_BYTES = 2_500;
/** What a compiler has to understand of all seven doors: a project's type check stays under a second. */
const TYPES_BYTES = 60_000;
/** The same with the doc comments, which are about half: they are what an editor shows, and the compiler skips them. */
const DECLARATION_BYTES = 120_000;
/** Unpacked, without the sandbox's door: what every install has to copy. */
const UNPACKED_BYTES = 1_500_000;

test('a client that creates and waits fits in 24 kB on the edge', async () => {
  const { atOnce } = await bundleSize({ code: OWN_PROGRAMS.client, from: ROOT });
  expect(atOnce).toBeGreaterThan(10_000);
  expect(atOnce).toBeLessThanOrEqual(CLIENT_BYTES);
});

test('checking a webhook fits in 2.5 kB', async () => {
  const { atOnce, later } = await bundleSize({ code: OWN_PROGRAMS.verifyWebhook, from: ROOT });
  expect(atOnce).toBeGreaterThan(500);
  expect(atOnce + later).toBeLessThanOrEqual(WEBHOOK_BYTES);
});

test('the types of all doors fit in 60 kB, and with their comments an editor loads little more', () => {
  const declarations = readdirSync(DIST)
    .filter((file) => /\.d\.c?ts$/.test(file))
    .map((file) => readFileSync(join(DIST, file), 'utf8'));
  expect(declarations.length).toBeGreaterThan(0);
  const types = declarations.join('\n').replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, '');
  expect(types.length).toBeGreaterThan(10_000);
  expect(types.length).toBeLessThanOrEqual(TYPES_BYTES);
  expect(declarations.join('\n').length).toBeLessThanOrEqual(DECLARATION_BYTES);
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
