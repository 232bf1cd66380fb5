import { r2 } from 'gen-client/storage';
import { describe, expect, it, vi } from 'vitest';

const bucket = { head: async () => null, get: async () => null, put: async () => null };

it.each([
  [undefined, 'fox.mp4', 'bucket is undefined. Bind it in wrangler.jsonc'],
  [{}, 'fox.mp4', 'bucket must be an object with the methods head, get, put'],
  [bucket, '', 'key must be a non-empty string'],
])('r2(%o, %o) is refused when it is called', (given, key, message) => {
  expect(() => r2(given as never, key)).toThrow(message);
});

describe('an object of a bucket', () => {
  const MOVIE = new Uint8Array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const uploaded = new Date('2026-01-01T00:00:00Z');
  const object = {
    size: 10,
    httpEtag: '"v1"',
    uploaded,
    httpMetadata: { contentType: 'video/mp4' },
    customMetadata: { 'gen-job': 'job_1' },
  };
  const open = (found: object | null = object, body: unknown = undefined) => {
    const get = vi.fn(async (_key: string, options: { range?: { offset: number; length: number } } = {}) => {
      const { offset = 0, length = 10 } = options.range ?? {};
      return { ...object, body: body ?? new Blob([MOVIE.slice(offset, offset + length)]).stream() };
    });
    const put = vi.fn(async (..._asked: unknown[]) => found);
    const store = r2({ head: async () => found, get, put } as never, 'fox.mp4');
    return { get, put, store };
  };
  const signal = new AbortController().signal;

  it.each<[object, number, number[], string | null]>([
    [{}, 200, [...MOVIE], null],
    [{ range: 'bytes=2-4' }, 206, [2, 3, 4], 'bytes 2-4/10'],
    [{ range: 'bytes=-3' }, 206, [7, 8, 9], 'bytes 7-9/10'],
    [{ range: 'bytes=2-4', ifRange: uploaded.toUTCString() }, 206, [2, 3, 4], 'bytes 2-4/10'],
    [{ range: 'bytes=2-4', ifRange: '"v2"' }, 200, [...MOVIE], null],
    [{ range: 'bytes=10-' }, 416, [], 'bytes */10'],
    [{ range: 'bytes=2-4', method: 'HEAD' }, 200, [], null],
  ])('asked for %j is answered with %i and %j', async (asked, status, bytes, contentRange) => {
    const { get, store } = open();
    const answer = (await store.get({ method: 'GET', signal, ...asked } as never)) as Response;
    expect([answer.status, answer.headers.get('content-range')]).toEqual([status, contentRange]);
    expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual(bytes);
    if (status !== 416) expect(answer.headers.get('content-length')).toBe(String(bytes.length || 10));
    if (bytes.length > 0) expect(get.mock.calls[0]?.[1]).toMatchObject({ onlyIf: { etagMatches: 'v1' } });
    else expect(get).not.toHaveBeenCalled();
  });

  it('is not there where the bucket has none, and where it was replaced meanwhile', async () => {
    expect(await open(null).store.get({ method: 'GET', signal } as never)).toBeUndefined();
    expect(await open(object, 'no stream').store.get({ method: 'GET', signal } as never)).toBeUndefined();
    expect(await open(null).store.head?.({ signal })).toBeUndefined();
    expect(await open().store.head?.({ signal })).toMatchObject({
      sizeBytes: 10,
      contentType: 'video/mp4',
      etag: '"v1"',
    });
  });

  it('is put with its type and job, and replaced only when told', async () => {
    const { put, store } = open();
    const asked = { contentType: 'video/mp4', sizeBytes: 1, metadata: { 'gen-job': 'job_1' }, signal };
    const body = () => new Blob(['x']).stream() as never;
    expect(await store.put(body(), { ...asked, overwrite: false })).toEqual({ etag: '"v1"' });
    await store.put(body(), { ...asked, overwrite: true });
    const stored = { httpMetadata: { contentType: 'video/mp4' }, customMetadata: { 'gen-job': 'job_1' } };
    expect(put.mock.calls.map(([key, , options]) => [key, options])).toEqual([
      ['fox.mp4', { ...stored, onlyIf: { etagDoesNotMatch: '*' } }],
      ['fox.mp4', stored],
    ]);
    await expect(open(null).store.put(body(), { ...asked, overwrite: false })).rejects.toMatchObject({
      code: 'object_exists',
      status: 412,
      store: 'r2',
    });
  });
});
