// The answer to a page as a whole: which headers, which words, which type, under which name.
import { describe, expect, it, vi } from 'vitest';
import { fileResponse, plainResponse } from '../../src/adapters/storage/output-response.js';
import { path } from '../../src/client/endpoint.js';
import { outputHeaders, outputInfoOf, requireJobId } from '../../src/downloading/output.js';

const HEADERS = {
  'content-type': 'video/mp4',
  'content-length': '5',
  etag: '"v1"',
  'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
  'accept-ranges': 'bytes',
  'x-secret': 'of the service',
};
const SHOWING = { name: 'job_1', isSaved: false, cacheControl: 'private' };
const found = (headers: Record<string, string> = {}, status = 200) =>
  new Response('12345', { status, headers: { ...HEADERS, ...headers } });
const serve = (answer: Response, asked: RequestInit = {}, showing: Partial<typeof SHOWING> = {}) =>
  fileResponse(new Request('https://app.test/file', asked), answer, { ...SHOWING, ...showing });

describe('a file is shown', () => {
  it('with its own headers, none of the service, and nothing that lets a script run', async () => {
    const answer = await serve(found());
    expect([answer.status, await answer.text(), Object.fromEntries(answer.headers)]).toEqual([
      200,
      '12345',
      {
        'accept-ranges': 'bytes',
        'cache-control': 'private',
        'content-disposition': 'inline; filename="job_1.mp4"',
        'content-length': '5',
        'content-security-policy': 'sandbox',
        'content-type': 'video/mp4',
        etag: '"v1"',
        'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
        'x-content-type-options': 'nosniff',
      },
    ]);
  });

  it.each([
    ['video/mp4; codecs="avc1.64001f, mp4a.40.2"', 'video/mp4; codecs="avc1.64001f, mp4a.40.2"'],
    ['VIDEO/MP4; x=1; Codecs=avc1', 'video/mp4; codecs="avc1"'],
    ['video/mp4; codecs="a<b"', 'video/mp4'],
    ['video/mp4; codecs=a; codecs=b', 'video/mp4'],
    ['video/mp4; codecs=""', 'video/mp4'],
    ['video/mp4; codecs=a,b,c,d,e,f,g,h', 'video/mp4; codecs="a, b, c, d, e, f, g, h"'],
    ['video/mp4; codecs=a,b,c,d,e,f,g,h,i', 'video/mp4'],
    [`video/mp4; codecs=${'a'.repeat(61)}`, 'video/mp4'],
    ['image/svg+xml', 'application/octet-stream'],
    ['text/html', 'application/octet-stream'],
    ['video/unheard-of', 'application/octet-stream'],
    ['', 'application/octet-stream'],
  ])('as %j under the type %j, and is saved where that says nothing', async (given, shown) => {
    const { headers } = await serve(found({ 'content-type': given }));
    expect(headers.get('content-type')).toBe(shown);
    expect(headers.get('content-disposition')).toMatch(
      shown === 'application/octet-stream' ? /^attachment; / : /^inline; /,
    );
  });

  it.each([
    ['fox', false, 'inline; filename="fox.mp4"'],
    ['fox.mov', true, 'attachment; filename="fox.mov"'],
    ['füchse.mp4', true, `attachment; filename="f_chse.mp4"; filename*=UTF-8''f%C3%BCchse.mp4`],
  ])('under the name %s', async (name, isSaved, expected) => {
    expect((await serve(found(), {}, { name, isSaved })).headers.get('content-disposition')).toBe(expected);
  });

  it('as a part of itself', async () => {
    const { status, headers } = await serve(found({ 'content-range': 'bytes 0-4/9' }, 206));
    expect([status, headers.get('content-range'), headers.get('accept-ranges')]).toEqual([206, 'bytes 0-4/9', 'bytes']);
    expect((await serve(found({ 'content-range': 'bytes 0-4/9' }))).headers.get('content-range')).toBeNull();
  });

  it('without length and ranges where it is encoded, and without its bytes to HEAD', async () => {
    const encoded = await serve(found({ 'content-encoding': 'gzip' }));
    expect(['content-length', 'accept-ranges', 'etag'].map((name) => encoded.headers.has(name))).toEqual([
      false,
      false,
      true,
    ]);
    const head = await serve(found({ 'content-encoding': 'identity' }), { method: 'HEAD' });
    expect([head.body, head.headers.get('content-length')]).toEqual([null, '5']);
  });

  it.each<[Record<string, string>, number]>([
    [{ 'if-none-match': '"v1"' }, 304],
    [{ 'if-none-match': '"v0", W/"v1"' }, 304],
    [{ 'if-none-match': ' * ' }, 304],
    [{ 'if-none-match': '"v2"' }, 200],
    [{ 'if-none-match': '"v2"', 'if-modified-since': 'Fri, 02 Jan 2026 00:00:00 GMT' }, 200],
    [{ 'if-modified-since': 'Thu, 01 Jan 2026 00:00:00 GMT' }, 304],
    [{ 'if-modified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 200],
    [{ 'if-modified-since': 'yesterday' }, 200],
  ])('to a page that asks with %j: %i', async (headers, status) => {
    const answer = await serve(found(), { headers });
    expect([answer.status, answer.headers.has('content-length')]).toEqual([status, status === 200]);
    expect(answer.headers.get('etag')).toBe('"v1"');
  });
});

it.each([
  [404, 'Not found.'],
  [405, 'Method not allowed.'],
  [409, 'Not finished yet.'],
  [410, 'No longer available.'],
  [416, 'Range not satisfiable.'],
  [502, 'The file cannot be read at the moment.'],
])('an answer %i without a file says: %s', async (status, words) => {
  const answer = plainResponse(status, { 'retry-after': '1' }, ' More.');
  expect([answer.status, await answer.text(), Object.fromEntries(answer.headers)]).toEqual([
    status,
    `${words} More.`,
    {
      'cache-control': 'no-store',
      'content-security-policy': 'sandbox',
      'content-type': 'text/plain; charset=utf-8',
      'retry-after': '1',
      'x-content-type-options': 'nosniff',
    },
  ]);
});

describe('a call on the file of a job', () => {
  it.each([
    [{ job: { id: 'job_1' } }, 'save: job is not a job. Pass created.job instead of what the create returned.'],
    [undefined, 'save: job is undefined. Pass a job or its id.'],
    ['', 'save: job is "". Pass a job or its id.'],
    [{ id: 7 }, expect.stringMatching(/^save: job is .+\. Pass a job or its id\.$/)],
  ])('is refused for %j', (job, message) => {
    expect(() => requireJobId('save', job)).toThrow(expect.objectContaining({ message }));
    expect([requireJobId('save', 'job_1'), requireJobId('save', { id: 'job_2' })]).toEqual(['job_1', 'job_2']);
  });

  it.each<[Parameters<typeof outputHeaders>, object]>([
    [[undefined], {}],
    [[{}], {}],
    [[undefined, '"v1"'], {}],
    [['bytes=-5'], { range: 'bytes=-5' }],
    [[{ start: 5 }, '"v1"'], { range: 'bytes=5-', 'if-range': '"v1"' }],
    [[{ end: 0 }], { range: 'bytes=0-0' }],
    [[{ start: 5, end: 9 }], { range: 'bytes=5-9' }],
    [[{ start: 5, end: 5 }], { range: 'bytes=5-5' }],
  ])('%j asks for the file as it is with %j', (asked, headers) => {
    expect(outputHeaders(...asked)).toStrictEqual({ 'accept-encoding': 'identity', ...headers });
  });

  it.each([
    [{ start: 2, end: 1 }, '2 and 1'],
    [{ start: -1 }, '-1 and undefined'],
    [{ end: 1.5 }, 'undefined and 1.5'],
  ])('is refused for the range %j', (range, shown) => {
    expect(() => outputHeaders(range)).toThrow(
      `range: start and end must be whole numbers, 0 <= start <= end, not ${shown}.`,
    );
  });

  it.each<[Record<string, string>, number, object]>([
    [{ 'content-length': '5', 'accept-ranges': 'bytes' }, 200, { sizeBytes: 5, acceptsRanges: true }],
    [{ 'content-length': '5', 'accept-ranges': 'none' }, 200, { sizeBytes: 5, acceptsRanges: false }],
    [{ 'content-length': '5', 'content-encoding': 'gzip' }, 200, { sizeBytes: undefined }],
    [{ 'content-length': 'x5' }, 200, { sizeBytes: undefined, acceptsRanges: false }],
    [{ 'content-length': '5', 'content-range': 'bytes 0-4/9' }, 206, { sizeBytes: 9, acceptsRanges: true }],
    [{ 'content-length': '5', 'content-range': 'bytes 0-4/*' }, 206, { sizeBytes: undefined }],
    [{ 'content-length': '5', 'content-range': 'bytes 0-4/9 or so' }, 206, { sizeBytes: undefined }],
    [{ 'content-range': 'bytes 0-4/9', 'content-encoding': 'gzip' }, 206, { sizeBytes: undefined }],
    [{ expires: 'Thu, 01 Jan 2026 00:00:00 GMT' }, 200, { expiresAt: '2026-01-01T00:00:00.000Z', etag: undefined }],
    [
      { expires: '0x', etag: '"v1"', 'content-type': 'video/mp4', 'last-modified': 'a' },
      200,
      { expiresAt: undefined, etag: '"v1"', contentType: 'video/mp4', lastModified: 'a' },
    ],
  ])('%j of %i is told as %j', (headers, status, info) => {
    expect(outputInfoOf(new Response(null, { status, headers }))).toMatchObject(info);
  });

  it.each<[unknown, string]>([
    ['', 'An id must be a non-empty string, not an empty one.'],
    [undefined, 'An id must be a non-empty string, not undefined.'],
    [null, 'An id must be a non-empty string, not null.'],
    [{ id: 'job_1' }, 'An id must be a non-empty string, not an object: pass its id.'],
    [Promise.resolve('x'), 'An id must be a non-empty string, not a promise: await it.'],
    ['..', '".." is not an id.'],
    ['.', '"." is not an id.'],
    ['\ud83e', '"\\ud83e" is not an id.'],
  ])('is refused for the id %j once it begins', (id, message) => {
    const of = path`/jobs/${id as string}/output`;
    expect(of).toThrow(message);
    expect(path`/jobs/${'a/b c'}/output`()).toBe('/jobs/a%2Fb%20c/output');
  });
});

it.each([
  [16 * 1024 * 1024, true],
  [16 * 1024 * 1024 + 1, false],
  [undefined, false],
])('on Bun a file of %s bytes is given in one piece: %s', async (sizeBytes, isOnePiece) => {
  vi.stubGlobal('Bun', {});
  const { 'content-length': _, ...unsized } = HEADERS;
  const headers = { ...unsized, ...(sizeBytes !== undefined && { 'content-length': `${sizeBytes}` }) };
  const answer = new Response('12345', { headers });
  const served = await serve(answer);
  vi.unstubAllGlobals();
  expect(answer.bodyUsed).toBe(isOnePiece);
  expect(await served.text()).toBe('12345');
});
