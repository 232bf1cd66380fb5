// Conditional responses to a page, and the headers of requests for a job's file.
import { describe, expect, it, vi } from 'vitest';
import { fileResponse } from '../../src/adapters/storage/output-response.js';
import { outputHeaders, outputInfoOf } from '../../src/downloading/output.js';

const HEADERS = {
  'content-type': 'video/mp4',
  'content-length': '5',
  etag: '"v1"',
  'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
  'accept-ranges': 'bytes',
  'x-secret': 'not for the page',
};
const serve = (response: Response, init: RequestInit = {}) =>
  fileResponse(new Request('https://app.test/file', init), response, {
    jobId: 'job_1',
    contentType: 'video/mp4',
    isDownload: false,
  });

// For other conditions, see test/field/files/ranges.test.ts.
it.each<[Record<string, string>, number]>([
  [{ 'if-none-match': '"a,b" , W/"v1"' }, 304],
  [{ 'if-none-match': ' * ' }, 304],
  [{ 'if-none-match': '"v2"', 'if-modified-since': 'Fri, 02 Jan 2026 00:00:00 GMT' }, 200],
  [{ 'if-modified-since': 'Thu, 01 Jan 2026 00:00:00 GMT' }, 304],
  [{ 'if-modified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 200],
])('a request with %j gets status %i', async (headers, status) => {
  const response = await serve(new Response('12345', { headers: HEADERS }), { headers });
  expect([response.status, response.headers.has('content-length')]).toEqual([status, status === 200]);
  expect(response.headers.get('etag')).toBe('"v1"');
});

describe("a request for a job's file", () => {
  it.each<[Parameters<typeof outputHeaders>, object]>([
    [[undefined], {}],
    [[undefined, '"v1"'], {}],
    [['bytes=-5'], { range: 'bytes=-5' }],
    [[{ start: 5 }, '"v1"'], { range: 'bytes=5-', 'if-range': '"v1"' }],
    [[{ end: 0 }], { range: 'bytes=0-0' }],
    [[{ start: 5, end: 9 }], { range: 'bytes=5-9' }],
  ])('with the arguments %j has the headers %j', (args, headers) => {
    expect(outputHeaders(...args)).toStrictEqual({ 'accept-encoding': 'identity', ...headers });
  });

  it('is rejected for an invalid range', () => {
    expect(() => outputHeaders({ start: 2, end: 1 })).toThrow('range: start and end must be whole numbers');
  });

  it.each<[Record<string, string>, number, object]>([
    [{ 'content-length': '5', 'accept-ranges': 'bytes' }, 200, { sizeBytes: 5, acceptsRanges: true }],
    [{ 'content-length': '5', 'accept-ranges': 'none' }, 200, { sizeBytes: 5, acceptsRanges: false }],
    [{ 'content-length': '5', 'content-encoding': 'gzip' }, 200, { sizeBytes: undefined }],
    [{ 'content-length': '5', 'content-range': 'bytes 0-4/9' }, 206, { sizeBytes: 9, acceptsRanges: true }],
    [{ 'content-length': '5', 'content-range': 'bytes 0-4/*' }, 206, { sizeBytes: undefined }],
    [{ 'content-range': 'bytes 0-4/9', 'content-encoding': 'gzip' }, 206, { sizeBytes: undefined }],
    [{ expires: 'Thu, 01 Jan 2026 00:00:00 GMT' }, 200, { expiresAt: '2026-01-01T00:00:00.000Z', etag: undefined }],
    [
      { expires: '0x', etag: '"v1"', 'content-type': 'video/mp4', 'last-modified': 'a' },
      200,
      { expiresAt: undefined, etag: '"v1"', contentType: 'video/mp4', lastModified: 'a' },
    ],
  ])('with response headers %j and status %i returns %j', (headers, status, info) => {
    expect(outputInfoOf(new Response(null, { status, headers }))).toMatchObject(info);
  });
});

it.each([
  [16 * 1024 * 1024, true],
  [16 * 1024 * 1024 + 1, false],
  [undefined, false],
])('a file of %s bytes is sent in one chunk on Bun: %s', async (sizeBytes, isOneChunk) => {
  vi.stubGlobal('Bun', {});
  const { 'content-length': _, ...otherHeaders } = HEADERS;
  const headers = { ...otherHeaders, ...(sizeBytes !== undefined && { 'content-length': `${sizeBytes}` }) };
  const response = new Response('12345', { headers });
  const result = await serve(response);
  vi.unstubAllGlobals();
  expect(response.bodyUsed).toBe(isOneChunk);
  expect(await result.text()).toBe('12345');
});
