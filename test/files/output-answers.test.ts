// The answers of `jobs.output` and `jobs.outputInfo`: what is asked for, and what stands in the answer that the caller gets.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DownloadError } from '../../src/index.js';
import { BASE_URL, rejection, stubbed } from '../transport/support.js';

vi.mock('../../src/runtime/clock.js', async (load) => (await import('./quick-clock.js')).quickClock(load));

afterEach(() => {
  vi.unstubAllGlobals();
});

const HEADERS = { 'content-type': 'video/mp4', etag: '"a"', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' };
type Answer = () => Response;
const whole = (text: string, headers: Record<string, string> = {}): Answer => {
  return () => new Response(text, { statusText: 'Fine', headers: { ...HEADERS, ...headers } });
};
const rest = (text: string, range: string): Answer => {
  return () => new Response(text, { status: 206, headers: { ...HEADERS, 'content-range': range } });
};
const head = (headers: Record<string, string>, status = 200): Answer => {
  return () => new Response(null, { status, headers });
};

/** A client whose service gives these answers, and what it was asked for. */
function answered(...answers: Answer[]) {
  const { client, seen } = stubbed(answers.map((answer) => () => answer()));
  const asked = () =>
    seen.map(({ method, headers }) => [method, headers.range, headers['if-range']].filter(Boolean).join(' '));
  return { client, seen, asked, open: (options = {}) => client.jobs.output('job_1', { resume: true, ...options }) };
}

describe('a file is asked for', () => {
  it.each([
    [{ range: { start: 2, end: 5 }, ifRange: '"a"' }, 'bytes=2-5', '"a"'],
    [{ range: 'bytes=-5' }, 'bytes=-5', undefined],
    [{ ifRange: '"a"' }, undefined, undefined],
    [undefined, undefined, undefined],
  ])('as it is, with the options %j', async (options, range, ifRange) => {
    const { client, seen } = answered(whole('01'));
    await client.jobs.output({ id: 'job 1' }, options);
    expect(seen).toMatchObject([{ method: 'GET', url: `${BASE_URL}/v1/jobs/job%201/output` }]);
    const { 'accept-encoding': encoding, range: asked, 'if-range': tag } = seen[0]?.headers ?? {};
    expect([encoding, asked, tag]).toEqual(['identity', range, ifRange]);
  });

  it('without its bytes', async () => {
    const { client, seen } = answered(
      head({ ...HEADERS, 'content-length': '10', 'accept-ranges': 'bytes', expires: 'Fri, 02 Jan 2026 00:00:00 GMT' }),
    );
    expect(await client.jobs.outputInfo({ id: 'job_1' })).toEqual({
      contentType: 'video/mp4',
      sizeBytes: 10,
      etag: '"a"',
      lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT',
      acceptsRanges: true,
      expiresAt: '2026-01-02T00:00:00.000Z',
    });
    expect(seen).toMatchObject([
      { method: 'HEAD', url: `${BASE_URL}/v1/jobs/job_1/output`, headers: { 'accept-encoding': 'identity' } },
    ]);
    expect(seen[0]?.headers).not.toHaveProperty('range');
  });
});

describe('a body that goes on by itself', () => {
  it('keeps status, headers and length of the answer', async () => {
    const response = await answered(whole('0123456789', { 'content-length': '10', 'x-more': '1' })).open();
    expect([response.status, response.statusText, response.url]).toEqual([200, 'Fine', '']);
    expect(Object.fromEntries(response.headers)).toEqual({ ...HEADERS, 'content-length': '10', 'x-more': '1' });
    expect(await response.text()).toBe('0123456789');
  });

  it('of an answer without a length notices a cut by the size that HEAD tells, and asks for the rest', async () => {
    const { open, asked } = answered(whole('0123'), head({ 'content-length': '10' }), rest('456789', 'bytes 4-9/10'));
    expect(await (await open()).text()).toBe('0123456789');
    expect(asked()).toEqual(['GET', 'HEAD', 'GET bytes=4- "a"']);
  });

  it('ends where it ends when not even HEAD tells the length', async () => {
    for (const refused of [head({}, 404), head({}), head({ 'content-length': 'many' })]) {
      const { open, asked } = answered(whole('0123'), refused);
      expect(await (await open()).text()).toBe('0123');
      expect(asked()).toEqual(['GET', 'HEAD']);
    }
  });

  it('closes the connection when its reader cancels it, with the reason', async () => {
    const cancelled: unknown[] = [];
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(600)),
      cancel: (reason) => void cancelled.push(reason),
    });
    const { open } = answered(() => new Response(endless, { headers: { ...HEADERS, 'content-length': '6000' } }));
    const reader = (await open()).body?.getReader();
    await reader?.read();
    await reader?.cancel('seen enough');
    await expect.poll(() => cancelled).toEqual(['seen enough']);
  });

  it('sends the headers of the call again with each request', async () => {
    const { open, seen } = answered(whole('0123'), head({ 'content-length': '6' }), rest('45', 'bytes 4-5/6'));
    await (await open({ headers: { 'x-tenant': 'ann' } })).text();
    expect(seen.map(({ headers }) => headers['x-tenant'])).toEqual(['ann', 'ann', 'ann']);
  });

  it('of an encoded answer has no header that counts encoded bytes, because the bytes come decoded', async () => {
    const encoded = { 'content-encoding': 'gzip', 'content-length': '99', 'accept-ranges': 'bytes' };
    const { open } = answered(whole('0123', encoded), head({ 'content-length': '4' }));
    const response = await open();
    expect(Object.fromEntries(response.headers)).toEqual(HEADERS);
    expect(await response.text()).toBe('0123');
    const plain = await answered(
      whole('0123', { ...encoded, 'content-encoding': 'identity', 'content-length': '4' }),
    ).open();
    expect(Object.fromEntries(plain.headers)).toEqual({
      ...HEADERS,
      'content-encoding': 'identity',
      'content-length': '4',
      'accept-ranges': 'bytes',
    });
  });

  it('of an encoded answer whose size nobody tells is refused: a cut could not be noticed', async () => {
    const { open } = answered(whole('0123', { 'content-encoding': 'gzip' }), head({}, 404));
    expect(await rejection(open())).toMatchObject({
      name: 'DownloadError',
      code: 'interrupted',
      message: expect.stringContaining('Content-Encoding gzip'),
    } satisfies Partial<DownloadError> | object);
  });

  it.each([
    // The stream of the connection, and the one that goes on.
    ['4', [4, 4]],
    ['four', []],
    ['4, 4', []],
    ['', []],
  ])('has its length told to Cloudflare where the answer says %j', async (length, told) => {
    const sizes: number[] = [];
    class FixedLengthStream extends TransformStream {
      constructor(size: number) {
        super();
        sizes.push(size);
      }
    }
    vi.stubGlobal('FixedLengthStream', FixedLengthStream);
    const { open } = answered(whole('0123', { 'content-length': length }), head({}, 404));
    expect(await (await open()).text()).toBe('0123');
    expect(sizes).toEqual(told);
  });
});
