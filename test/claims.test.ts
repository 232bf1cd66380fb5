// The table of claims in CONTRIBUTING.md: each sentence is on its page, and each test and command that shows it exists.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8').replace(/\s+/g, ' ');
const [, table = ''] = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').split(
  '| claim | page | shown by |\n|---|---|---|\n',
);
const CLAIMS = table
  .slice(0, table.indexOf('\n\n'))
  .split('\n')
  .map((row) => row.slice(2, -2).split(' | ') as [claim: string, page: string, proof: string]);

test('there are claims', () => {
  expect(CLAIMS.length).toBeGreaterThan(30);
});

test.each(CLAIMS)('%s (%s) is said, and shown', (claim, page, proof) => {
  expect(read(page).includes(claim), `${page} says so`).toBe(true);
  const command = /^`npm run ([\w:]+)`$/.exec(proof)?.[1];
  if (command !== undefined) return expect(manifest().scripts).toHaveProperty([command]);
  const [, file = '', title = ''] = /^`(test\/[\w./-]+)`: (.+)$/.exec(proof) ?? [];
  expect(read(file).includes(title), `${file} has the test that CONTRIBUTING.md names`).toBe(true);
});

test('the README is short enough to be read', () => {
  expect(readFileSync(join(ROOT, 'README.md')).byteLength).toBeLessThanOrEqual(9_000);
});
