// Rejections by the service, HTML pages from proxies, errors with status 200, and the formats of Retry-After.
import { afterEach, describe, expect, it } from 'vitest';
import { APIError, GenClient, type GenError, RateLimitError, ResponseError } from '../../../src/index.js';
import {
  callFailure,
  endsWait,
  failureKindOf,
  isTransient,
  isUnknownJob,
  MAX_PAGES,
  pollFailure,
} from '../../../src/rules/failure-kind.js';
import { parseHttpDate, readRetryAfter } from '../../../src/rules/retry-after.js';
import { createSandbox } from '../../../src/sandbox/index.js';
import { rejection, stubbed } from '../../transport/support.js';

const html = (title: string) => `<!DOCTYPE html><html><head><title>${title}</title></head><body></body></html>`;
const HTML = { 'content-type': 'text/html; charset=utf-8' };

/** Returns the error of a poll with this response. */
async function pollError(status: number, body: string, headers: Record<string, string>): Promise<GenError> {
  const { client } = stubbed(() => new Response(body, { status, headers }), { maxRetries: 0, maxRetryAfterMs: 0 });
  return (await rejection(client.jobs.get('job_1'))) as GenError;
}

describe("an HTML page isn't a response from the service", () => {
  it.each<[source: string, status: number, body: string, headers: Record<string, string>, isOutage?: true]>([
    ['bb#2159: Cloudflare challenge', 403, html('Just a moment...'), { ...HTML, 'cf-mitigated': 'challenge' }],
    ['karaoke-gen#840: nginx during a deploy', 404, html('404 Not Found'), HTML],
    ['nginx: too large', 413, html('413 Request Entity Too Large'), HTML],
    ['nginx: basic auth of a staging host', 401, html('401 Authorization Required'), HTML],
    ['nginx: no upstream', 502, html('502 Bad Gateway'), HTML, true],
    ['an AWS load balancer', 503, html('503 Service Temporarily Unavailable'), HTML, true],
    ['a single-page app that catches every path', 200, html('App'), HTML],
    [
      'S3 in front of a site',
      404,
      '<?xml version="1.0"?><Error><Code>NoSuchBucket</Code></Error>',
      { 'content-type': 'application/xml' },
    ],
    ['markup labeled as JSON', 404, html('404'), { 'content-type': 'application/json' }],
    ['a page without a content type', 404, html('404'), {}],
    ['Traefik: no router', 404, '404 page not found\n', { 'content-type': 'text/plain; charset=utf-8' }],
    ['ingress-nginx: no backend', 404, 'default backend - 404', { 'content-type': 'text/plain; charset=utf-8' }],
    ['a truncated page', 403, '', HTML],
  ])('%s (%d)', async (_, status, body, headers, isOutage) => {
    const error = await pollError(status, body, headers);
    expect(failureKindOf(error)).toBe('lost');
    expect(callFailure(error)).toMatchObject({ kind: 'lost' });
    expect(isTransient(error)).toBe(true);
    expect(isUnknownJob(error)).toBe(false);
    expect([1, MAX_PAGES - 1, MAX_PAGES].map((row) => endsWait(error, row))).toEqual([false, false, !isOutage]);
    expect(pollFailure(error)?.isStrayPage).toBe(isOutage ? undefined : true);
    if (APIError.isInstance(error)) expect(error.recovery).toBe('retry_later');
  });

  it('but its error describes the page instead of an invalid API key or an unknown job', async () => {
    const error = await pollError(403, html('Just a moment...'), HTML);
    expect(error.message).toMatch(/received a web page instead of the service's response \(403, "Just a moment..."\)/);
  });

  it.each([
    ['PUT', 200],
    ['PUT', 403],
    ['PUT', 404],
    ['POST', 403],
  ])("and an upload's %s that receives one is retried (%d)", async (method, status) => {
    const sandbox = createSandbox();
    let pages = 1;
    const fetch = (input: string, init?: RequestInit) => {
      if (init?.method === method && pages-- > 0)
        return Promise.resolve(new Response(html('Proxy'), { status, headers: HTML }));
      return sandbox.fetch(new Request(input, init));
    };
    const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch });
    const file = new Blob([new Uint8Array(64)], { type: 'image/png' });
    expect(await client.uploads.upload(file)).toMatchObject({ status: 'ready' });
  });

  it.each<[source: string, status: number, body: string, headers: Record<string, string>]>([
    ['the service', 404, '{"success":false,"error":{"code":"job_not_found"}}', { 'content-type': 'application/json' }],
    ['JSON with another content type', 404, '{"error":{"code":"job_not_found"}}', HTML],
    ['truncated JSON', 404, '{"error":{"code":"job_no', { 'content-type': 'application/problem+json' }],
    ['no body', 404, '', {}],
  ])('unlike %s', async (_, status, body, headers) => {
    const error = await pollError(status, body, headers);
    expect(failureKindOf(error)).toBe('refused');
    expect(endsWait(error)).toBe(true);
    expect(isUnknownJob(error)).toBe(true);
  });

  it('and with status 429 it is a rate limit, and a job may exist', async () => {
    const error = await pollError(429, html('Too many requests'), { ...HTML, 'retry-after': '7' });
    expect(error).toBeInstanceOf(RateLimitError);
    expect((error as RateLimitError).retryAfterMs).toBe(7_000);
    expect([failureKindOf(error), isTransient(error), endsWait(error, MAX_PAGES)]).toEqual(['lost', false, false]);
  });
});

describe('a response with status 200', () => {
  const job = { id: 'job_1', status: 'processing', mediaType: 'video' };
  it.each<[source: string, body: object, code: string]>([
    ['openclaw#69578', { data: null, error: { code: 'job_not_found', message: 'no' } }, 'job_not_found'],
    ['success: false', { success: false, error: { code: 'job_not_found' } }, 'job_not_found'],
    ['without data', { error: { code: 'job_not_found' } }, 'job_not_found'],
    ['an error that is a string', { error: 'job_not_found' }, 'job_not_found'],
    [
      'data next to the error',
      { error: { code: 'insufficient_balance' }, data: { top_up_url: 'https://x.test' } },
      'insufficient_balance',
    ],
  ])('is a rejection: %s', async (_, body, code) => {
    const error = await pollError(200, JSON.stringify(body), { 'content-type': 'application/json' });
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).code).toBe(code);
    expect(failureKindOf(error)).toBe('refused');
  });

  it.each(['uploads.complete', 'uploads.delete'] as const)('fails %s, whose response has no data', async (name) => {
    const body = JSON.stringify({ data: null, error: { code: 'upload_not_found' } });
    const { client } = stubbed(() => new Response(body));
    const call = name === 'uploads.delete' ? client.uploads.delete('up_1') : client.uploads.complete('up_1');
    expect(await rejection(call)).toMatchObject({ code: 'upload_not_found' });
  });

  it.each<[source: string, body: object]>([
    ['error: null next to a job', { success: true, error: null, data: { job } }],
    ['an error next to a job', { error: { code: 'warning' }, data: { job } }],
    ['a job without an envelope that has its own error', { ...job, error: { code: 'generation_failed' } }],
  ])("isn't a rejection: %s", async (_, body) => {
    const { client } = stubbed(() => new Response(JSON.stringify(body)));
    expect(await client.jobs.get('job_1')).toMatchObject({ id: 'job_1' });
  });

  it("and an error for an upload's PUT rejects with the error's code", async () => {
    const sandbox = createSandbox();
    const body = { data: null, error: { code: 'dispatch_disabled', message: 'Come back later.' } };
    const fetch = async (input: string, init?: RequestInit) =>
      init?.method === 'PUT' ? Response.json(body) : sandbox.fetch(new Request(input, init));
    const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch });
    const upload = client.uploads.upload(new Blob([new Uint8Array(64)], { type: 'image/png' }));
    expect(await rejection(upload)).toMatchObject({ step: 'put', cause: { code: 'dispatch_disabled' } });
  });

  it('without a job or an error rejects with a ResponseError', async () => {
    expect(await pollError(200, '{"data":{}}', {})).toBeInstanceOf(ResponseError);
  });
});

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const zone = process.env.TZ;
afterEach(() => {
  process.env.TZ = zone;
});

describe.each(['UTC', 'America/New_York', 'Pacific/Kiritimati'])('Retry-After in the time zone %s', (tz) => {
  it.each<[value: string | string[], ms: number | undefined]>([
    ['0', 0],
    ['120', 120_000],
    ['  5  ', 5_000],
    ['1.5', 1_500],
    ['007', 7_000],
    ['4102444800', 4_102_444_800_000],
    // Duplicate headers: the longer one applies.
    [['3', '9'], 9_000],
    [['9', '3'], 9_000],
    [['2', '2'], 2_000],
    [['5', 'Sun, 01 Mar 2026 12:01:00 GMT'], 60_000],
    [['Sun, 01 Mar 2026 12:01:00 GMT', '5'], 60_000],
    // RFC 9110, 5.6.7.
    ['Sun, 01 Mar 2026 12:01:00 GMT', 60_000],
    ['Sunday, 01-Mar-26 12:01:00 GMT', 60_000],
    ['Sun Mar  1 12:01:00 2026', 60_000],
    ['sun, 01 mar 2026 12:01:00 gmt', 60_000],
    ['Sun, 01 Mar 2026 12:00:60 GMT', 60_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
    ['Sun Nov  6 08:49:37 1994', 0],
    ['Saturday, 01-Mar-75 12:00:00 GMT', Date.UTC(2075, 2, 1, 12) - NOW],
    ['Saturday, 01-Mar-77 12:00:00 GMT', 0],
    // Anything else is ignored.
    ...['', ' ', '-1', '-0', '0x10', '1e3', 'five', '1,5', '.5', '5.', 'NaN', 'Infinity', '+5', '5;x=1', 'null'].map(
      (value): [string, undefined] => [value, undefined],
    ),
    ['after 5', undefined],
    ['5s', undefined],
    ['1 2', undefined],
    ['Wait 5', undefined],
    ['soon, 2030', undefined],
    ['2026-03-01T12:01:00Z', undefined],
    ['Sun, 01 Mar 2026 12:01:00', undefined],
    ['Sun, 01 Mar 2026 12:01:00 PST', undefined],
    ['Sun, 32 Dec 2030 11:00:00 GMT', undefined],
    ['Sun, 31 Feb 2030 11:00:00 GMT', undefined],
    ['Sun, 01 Mar 2026 25:99:99 GMT', undefined],
    ['Sun Mar 01 2026 12:01:00 GMT', undefined],
  ])('%j is %j ms', (value, ms) => {
    process.env.TZ = tz;
    const headers = new Headers();
    for (const part of [value].flat()) headers.append('retry-after', part);
    expect(readRetryAfter(headers, NOW)).toBe(ms);
  });

  it.each(['Sun, 01 Mar 2026 11:00:00 GMT', 'Sun Mar  1 11:00:00 2026'])(
    "is relative to the response's Date: %s",
    (date) => {
      process.env.TZ = tz;
      const headers = new Headers({ 'retry-after': 'Sun, 01 Mar 2026 11:01:00 GMT', date });
      expect(readRetryAfter(headers, NOW)).toBe(60_000);
      expect(parseHttpDate(date, NOW)).toBe(Date.UTC(2026, 2, 1, 11));
    },
  );
});
