// Size ceilings. The reason stands beside each number: raise one only with a better reason.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { bundleSize, OWN_PROGRAMS } from '../bench/size.js';
import { ensureBuilt, ROOT } from './support/build.js';

const DIST = join(ROOT, 'dist');

beforeAll(ensureBuilt, 180_000);

/** A worker that creates and waits, in gzipped bytes: ky and p-retry are 10.7 kB of it; fal pays 20, stripe 33, openai 86. */
const CLIENT_BYTES = 24_000;
/** Checking a webhook alone, in gzipped bytes: receivers on the edge pay it on every cold start; standardwebhooks costs 4.9 kB. */
const WEBHOOK_BYTES = 2_500;
/** What an editor reads before it can complete a name: a project's type check stays under a second. */
const DECLARATION_BYTES = 60_000;
/** Unpacked, without the sandbox's door and the command line that bundles it: what every install has to copy. */
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

test('the declarations of all doors fit in 60 kB', () => {
  const sizes = readdirSync(DIST)
    .filter((file) => /\.d\.c?ts$/.test(file))
    .map((file) => statSync(join(DIST, file)).size);
  expect(sizes.length).toBeGreaterThan(0);
  expect(sizes.reduce((total, size) => total + size, 0)).toBeLessThanOrEqual(DECLARATION_BYTES);
});

test('the package without the sandbox unpacks to 1.5 MB at most', () => {
  const withoutSandbox = readdirSync(DIST).filter((file) => !isOfSandbox(file));
  const size = withoutSandbox.reduce((total, file) => total + statSync(join(DIST, file)).size, 0);
  expect(size).toBeGreaterThan(50_000);
  expect(size).toBeLessThanOrEqual(UNPACKED_BYTES);
});

/** A file that is made of the sandbox's or the command line's sources for the greater part, or its map. */
function isOfSandbox(file: string): boolean {
  if (!/\.c?js(\.map)?$/.test(file)) return false;
  const map = JSON.parse(readFileSync(join(DIST, file.replace(/(\.map)?$/, '.map')), 'utf8')) as SourceMap;
  const bytes = (of: RegExp) =>
    map.sources.reduce((total, source, at) => total + (of.test(source) ? (map.sourcesContent[at]?.length ?? 0) : 0), 0);
  return bytes(/src\/(sandbox|cli)\/|node_modules\/(?!ky\/|p-retry\/|is-network-error\/)/) > bytes(/./) / 2;
}

interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent: readonly (string | null)[];
}
