import { r2 } from 'gen-client/storage';
import { describe, expect, it } from 'vitest';

const bucket = { head: async () => null, get: async () => null, put: async () => null };

it.each([
  [undefined, 'fox.mp4', 'bucket is undefined. Bind it in wrangler.jsonc'],
  [{}, 'fox.mp4', 'bucket must be an object with the methods head, get, put'],
  [bucket, '', 'key must be a non-empty string'],
])('r2(%o, %o) throws', (binding, key, message) => {
  expect(() => r2(binding as never, key)).toThrow(message);
});

describe('an object in a bucket', () => {
  const uploaded = new Date('2026-01-01T00:00:00Z');
  const object = {
    size: 10,
    httpEtag: '"v1"',
    uploaded,
    httpMetadata: { contentType: 'video/mp4' },
    customMetadata: { 'gen-job': 'job_1' },
  };
  const open = (head: object | null = object) =>
    r2({ ...bucket, head: async () => head, get: async () => ({ ...object, body: 'no stream' }) } as never, 'fox.mp4');
  const signal = new AbortController().signal;

  it("doesn't exist if the bucket returns null, or if it is replaced after the HEAD", async () => {
    for (const head of [null, object]) expect(await open(head).get({ method: 'GET', signal })).toBeUndefined();
    expect(await open(null).head?.({ signal })).toBeUndefined();
    expect(await open().head?.({ signal })).toMatchObject({
      sizeBytes: 10,
      contentType: 'video/mp4',
      etag: '"v1"',
    });
  });
});
