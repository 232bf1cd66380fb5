// Range and conditional requests from players, browsers, and download managers to an output handler. Each row: source, input,
// expected value. A server may ignore an invalid range (RFC 9110, 14.2).
import { describe, expect, test } from 'vitest';
import { createOutputHandler } from '../../../src/adapters/storage/index.js';
import { createSandbox } from '../../../src/sandbox/index.js';

const sandbox = createSandbox({ jobDurationMs: 0 });
const client = sandbox.client();
const { job } = await client.images.create({ prompt: 'a fox' });
const handler = createOutputHandler({ client, authorize: () => true });
const request = (headers: Record<string, string>, method = 'GET') =>
  handler(new Request(`https://app.test/files/${job.id}.png`, { method, headers }));
const complete = await request({});
const bytes = new Uint8Array(await complete.arrayBuffer());
const etag = complete.headers.get('etag') ?? '';
const size = bytes.length;

type Expected = 'all' | 'none' | readonly [first: number, last: number];

const RANGES: readonly (readonly [source: string, range: string, expected: Expected])[] = [
  ['range-parser: the first bytes', 'bytes=0-4', [0, 4]],
  ['Safari probes with two bytes', 'bytes=0-1', [0, 1]],
  ['Chromium requests everything', 'bytes=0-', [0, size - 1]],
  ['send: the first byte', 'bytes=0-0', [0, 0]],
  ['send: one byte in the middle', 'bytes=2-2', [2, 2]],
  ['curl -C: the rest', 'bytes=100-', [100, size - 1]],
  ['curl -r: the last bytes', 'bytes=-3', [size - 3, size - 1]],
  ['send: an end past the end of the file', 'bytes=2-99999999', [2, size - 1]],
  ['send: more last bytes than exist', 'bytes=-99999999', [0, size - 1]],
  ['go net/http: the last byte', `bytes=${size - 1}-${size - 1}`, [size - 1, size - 1]],
  ['an end beyond the number range', 'bytes=0-99999999999999999999999999', [0, size - 1]],
  ['numbers with leading zeros', 'bytes=00-04', [0, 4]],
  ['surrounding spaces, which HTTP removes', ' bytes=0-4 ', [0, 4]],
  ['send: a start at the end', `bytes=${size}-`, 'none'],
  ['send: a start past the end', 'bytes=99999999-', 'none'],
  ['a start beyond the number range', 'bytes=99999999999999999999999999-', 'none'],
  ['send: the last zero bytes', 'bytes=-0', 'none'],
  ['send: an end before its start', 'bytes=5-2', 'all'],
  ['range-parser: another unit', 'items=0-4', 'all'],
  ['range-parser: no unit', '0-4', 'all'],
  ['send: no range', 'bytes', 'all'],
  ['range-parser: an empty set', 'bytes=', 'all'],
  ['range-parser: only commas', 'bytes=, , ', 'all'],
  ['range-parser: only a number', 'bytes=100200', 'all'],
  ['range-parser: a word', 'malformed', 'all'],
  ['range-parser: a non-numeric start', 'bytes=x-100', 'all'],
  ['range-parser: a non-numeric end', 'bytes=100-x', 'all'],
  ['range-parser: two dashes', 'bytes=--100', 'all'],
  ['range-parser: three numbers', 'bytes=100-200-300', 'all'],
  ['range-parser: only a dash', 'bytes=-', 'all'],
  ['hexadecimal', 'bytes=0x0-0x4', 'all'],
  ['an exponent', 'bytes=1e0-4', 'all'],
  ['a sign', 'bytes=+0-4', 'all'],
  ['a parameter', 'bytes=0-4;q=1', 'all'],
  ['inner spaces, which the grammar forbids', 'bytes=0 - 4', 'all'],
  // Unlike send, on purpose: no player requests several parts, and a multipart body is larger than the file.
  ['send: several parts', 'bytes=0-1,3-4', 'all'],
  ['range-parser: one valid and one invalid part', 'bytes=0-1,x-', 'all'],
];

test.each(RANGES)('%s (%s)', async (_source, range, expected) => {
  const response = await request({ range });
  const body = new Uint8Array(await response.arrayBuffer());
  const actual = [response.status, response.headers.get('content-range'), response.headers.get('content-length')];
  if (expected === 'all') {
    expect(actual).toEqual([200, null, String(size)]);
    expect(body).toEqual(bytes);
  } else if (expected === 'none') {
    expect(actual.slice(0, 2)).toEqual([416, `bytes */${size}`]);
  } else {
    const [first, last] = expected;
    expect(actual).toEqual([206, `bytes ${first}-${last}/${size}`, String(last - first + 1)]);
    expect(body).toEqual(bytes.subarray(first, last + 1));
  }
});

describe('a condition', () => {
  test.each<[source: string, headers: Record<string, string>, status: number]>([
    ['a browser that has the file', { 'if-none-match': etag }, 304],
    ['a proxy that weakened the validator', { 'if-none-match': `W/${etag}` }, 304],
    ['send: one of several', { 'if-none-match': `"a", ${etag}, "b"` }, 304],
    ['send: any', { 'if-none-match': '*' }, 304],
    ['send: another', { 'if-none-match': '"other"' }, 200],
    ['send: the same without quotes, which is different', { 'if-none-match': etag.replaceAll('"', '') }, 200],
    ['a player that resumes the same file', { range: 'bytes=0-4', 'if-range': etag }, 206],
    ['a player that resumes an older file', { range: 'bytes=0-4', 'if-range': '"older"' }, 200],
    [
      'a weak validator, which cannot combine parts (RFC 9110, 13.1.5)',
      { range: 'bytes=0-4', 'if-range': `W/${etag}` },
      200,
    ],
    ['a date, for a file without one', { range: 'bytes=0-4', 'if-range': new Date().toUTCString() }, 200],
    ['if-range without a range', { 'if-range': etag }, 200],
    ['a condition, which takes precedence over the range', { range: 'bytes=0-4', 'if-none-match': etag }, 304],
  ])('%s', async (_source, headers, status) => {
    const response = await request(headers);
    expect(response.status).toBe(status);
    if (status === 304)
      expect([(await response.arrayBuffer()).byteLength, response.headers.get('etag')]).toEqual([0, etag]);
  });
});

describe('another method', () => {
  test.each<[source: string, method: string, headers: Record<string, string>, status: number]>([
    ['HEAD', 'HEAD', {}, 200],
    ['HEAD ignores a range (RFC 9110, 14.2)', 'HEAD', { range: 'bytes=0-4' }, 200],
    ['HEAD of a known file', 'HEAD', { 'if-none-match': etag }, 304],
    ['POST', 'POST', {}, 405],
    ['DELETE', 'DELETE', {}, 405],
  ])('%s', async (_source, method, headers, status) => {
    const response = await request(headers, method);
    expect([response.status, await response.text()]).toEqual([status, status === 405 ? expect.any(String) : '']);
    if (status === 200) expect(response.headers.get('content-length')).toBe(String(size));
    if (status === 405) expect(response.headers.get('allow')).toContain('GET');
  });
});
