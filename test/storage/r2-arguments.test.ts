import { r2 } from 'gen-client/storage';
import { expect, it } from 'vitest';

const bucket = { head: async () => null, get: async () => null, put: async () => null };

it.each([
  [undefined, 'fox.mp4', 'bucket is undefined. Bind it in wrangler.jsonc'],
  [{}, 'fox.mp4', 'bucket must be an object with the methods head, get, put'],
  [bucket, '', 'key must be a non-empty string'],
])('r2(%o, %o) is refused when it is called', (given, key, message) => {
  expect(() => r2(given as never, key)).toThrow(message);
});
