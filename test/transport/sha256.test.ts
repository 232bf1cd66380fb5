import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { PlainSha256, sha256Of } from '../../src/runtime/sha256.js';

const oracle = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

test('SHA-256 matches node:crypto for every length around a block, and for non-ASCII text', () => {
  for (let length = 0; length <= 200; length++) {
    const bytes = randomBytes(length);
    const hash = new PlainSha256();
    hash.update(bytes);
    expect(hash.hex()).toBe(oracle(bytes));
  }
  expect(sha256Of('fuchs 🦊 żółć')).toBe(oracle('fuchs 🦊 żółć'));
});

test("SHA-256 doesn't depend on chunk boundaries", () => {
  const bytes = randomBytes(5_000);
  for (const piece of [1, 7, 63, 64, 65, 1_000]) {
    const hash = new PlainSha256();
    for (let at = 0; at < bytes.length; at += piece) hash.update(bytes.subarray(at, at + piece));
    expect(hash.hex()).toBe(oracle(bytes));
  }
});
