// Download responses as services, object stores, and proxies send them. Each row lists its source.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { saveOutput } from '../../../src/adapters/node/index.js';
import { copyOutput, createOutputHandler } from '../../../src/adapters/storage/index.js';
import { GenClient } from '../../../src/index.js';
import { createSandbox } from '../../../src/sandbox/index.js';
import { quickPauses } from '../../files/support.js';
import { persistentStore } from '../../support/persistent-store.js';

quickPauses();

const latin1 = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));
const filled = (head: string) => latin1(head + '\x07'.repeat(5_000));
const MP4 = filled('\0\0\0\x18ftypmp42\0\0\0\0mp42isom');
const WEBP = filled('RIFF\x80\x13\0\0WEBPVP8 ');
const PAGE = latin1('<!DOCTYPE html><html><body>Sign in to continue</body></html>');
const RAW = filled('\x01\x02');

interface FileResponse {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body: Uint8Array<ArrayBuffer> | string;
}

const rejected = (status: number, code: string): FileResponse => ({
  status,
  body: JSON.stringify({ error: { code } }),
});
const file = (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): FileResponse => ({
  body,
  headers: { 'content-length': `${body.length}`, etag: '"a"', ...headers },
});
const labeled = (body: Uint8Array<ArrayBuffer>, type: string, encoding?: string) =>
  file(body, { 'content-type': type, ...(encoding && { 'content-encoding': encoding }) });
/** The content-length counts the encoded bytes. */
const GZIPPED = { 'content-encoding': 'gzip', 'content-length': '99' };

/** Creates a client whose service sends these responses for the file. The last one repeats. */
function clientOf(responses: readonly FileResponse[], job: object = {}) {
  const requests: string[] = [];
  const remaining = [...responses];
  const fetch = async (url: string, init: RequestInit = {}) => {
    if (!url.endsWith('/output')) {
      const fields = { id: 'job_1', status: 'completed', completedAt: new Date().toISOString(), ...job };
      return Response.json({ success: true, data: { job: fields } });
    }
    requests.push(init.method ?? 'GET');
    const {
      status = 200,
      headers = {},
      body,
    } = (remaining.length > 1 ? remaining.shift() : remaining[0]) ?? rejected(500, 'none');
    const range = new Headers(init.headers).get('range');
    const [, start = '', end = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    if (start !== '' && status === 200) {
      const [from, to] = [Number(start), Math.min(Number(end || body.length - 1), body.length - 1)];
      const part = { 'content-range': `bytes ${from}-${to}/${body.length}`, 'content-length': `${to - from + 1}` };
      return new Response(body.slice(from, to + 1), { status: 206, headers: { ...headers, ...part } });
    }
    const plain = new Response(init.method === 'HEAD' ? null : new Blob([body]).stream(), { status, headers });
    return Object.defineProperty(plain, 'url', { value: url });
  };
  const options = { apiKey: 'k', baseUrl: 'https://service.test', maxRetries: 0, rateLimit: 'off' } as const;
  return { client: new GenClient({ ...options, fetch }), requests };
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gen-field-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function saveAndDescribe(client: GenClient, job: object | string = 'job_1') {
  const outcome = await saveOutput(client, job as string, `${directory}/`).then(
    ({ path, contentType, sizeBytes }) => ({ name: basename(path), contentType, sizeBytes }),
    ({ name, code, recovery }) => ({ name, code, recovery }),
  );
  if (!('sizeBytes' in outcome)) expect(await readdir(directory)).toEqual([]);
  return outcome;
}
async function copyAndDescribe(client: GenClient) {
  let stored: object | undefined;
  const put = async (body: ReadableStream, { contentType, sizeBytes }: { contentType: string; sizeBytes: number }) => {
    for await (const _ of body);
    stored = { contentType, sizeBytes };
  };
  return copyOutput(client, 'job_1', { put }, { retries: 0 }).then(
    () => stored,
    ({ name, code, recovery }) => ({ name, code, recovery, ...stored }),
  );
}
/** Requests the file from an output handler. */
const serveFile = (client: GenClient, init: RequestInit = {}, options: object = {}) =>
  createOutputHandler({ client, authorize: () => true, ...options })(new Request('https://app.test/job_1', init));
const NOT_MEDIA = { name: 'DownloadError', code: 'not_media', recovery: 'retry' };

describe.each<[source: string, what: string, FileResponse, extension: string, contentType: string]>([
  ['neurolink#1679', 'WebP as image/png', labeled(WEBP, 'image/png'), 'webp', 'image/webp'],
  ['S3 default', 'MP4 as octet-stream', labeled(MP4, 'application/octet-stream'), 'mp4', 'video/mp4'],
  ['RFC 9110, 8.3', 'MP4 without a type', file(MP4), 'mp4', 'video/mp4'],
  ['Apache default', 'MP4 as text/html', labeled(MP4, 'text/html'), 'mp4', 'video/mp4'],
  ['RFC 6381', 'codecs are retained', labeled(MP4, 'video/mp4; codecs="avc1"'), 'mp4', 'video/mp4; codecs="avc1"'],
  ['not from a report', 'unrecognized bytes', labeled(RAW, 'video/webm'), 'webm', 'video/webm'],
  ['donsetch#290', 'Content-Encoding: UTF-8', labeled(MP4, 'video/mp4', 'UTF-8'), 'mp4', 'video/mp4'],
  ['kener#841', 'Content-Encoding: none', labeled(MP4, 'video/mp4', 'none'), 'mp4', 'video/mp4'],
  ['nginx gzip', 'decoded gzip with the encoded Content-Length', { body: MP4, headers: GZIPPED }, 'mp4', 'video/mp4'],
])('%s: %s', (_source, _what, response, extension, contentType) => {
  it('is saved with the right extension and type', async () => {
    expect(await saveAndDescribe(clientOf([response]).client)).toEqual({
      name: `job_1.${extension}`,
      contentType,
      sizeBytes: response.body.length,
    });
  });

  it('is copied with its type', async () => {
    expect(await copyAndDescribe(clientOf([response]).client)).toEqual({
      contentType,
      sizeBytes: response.body.length,
    });
  });

  // A range of encoded bytes isn't a range of the file.
  const kinds = response.headers === GZIPPED ? ['GET'] : ['GET', 'HEAD', 'bytes=0-1', 'bytes=900-'];
  it.each(kinds)('is served with its type for %s', async (kind) => {
    const init = kind.startsWith('bytes') ? { headers: { range: kind } } : { method: kind };
    const { headers } = await serveFile(clientOf([response]).client, init);
    // Without the first bytes, a label that browsers support is retained.
    const types = [contentType, ...(init.method === 'GET' ? [] : [response.headers?.['content-type']])];
    expect(types).toContain(headers.get('content-type'));
    expect(headers.get('content-disposition')).toMatch(/^inline/);
  });
});

describe.each<[source: string, FileResponse]>([
  ['unifi-protect#515: a sign-in page as text/plain', labeled(PAGE, 'text/plain')],
  ['a sign-in page as a video', labeled(PAGE, 'video/mp4')],
  ['a sign-in page without a type or a length', { body: PAGE }],
  ['an error with status 200', labeled(latin1('{"success":false}'), 'application/octet-stream')],
  ["an object store's XML error", labeled(latin1('<?xml version="1.0"?><Error/>'), 'binary/octet-stream')],
  ['unrecognized bytes as a page', labeled(RAW, 'text/html')],
])('%s', (_, response) => {
  it('is neither saved nor copied, but a later call saves the file', async () => {
    const { client } = clientOf([response]);
    expect(await saveAndDescribe(client)).toEqual(NOT_MEDIA);
    expect(await copyAndDescribe(client)).toEqual(NOT_MEDIA);
    const recovered = clientOf([response, file(MP4)]);
    expect(await saveAndDescribe(recovered.client)).toEqual(NOT_MEDIA);
    expect(await saveAndDescribe(recovered.client)).toMatchObject({ name: 'job_1.mp4' });
  });

  it('makes an output handler respond 502', async () => {
    expect((await serveFile(clientOf([response]).client)).status).toBe(502);
  });
});

it('unifi-protect#515: after an HTML page, the create stays unfinished until its file is saved', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  let isPage = true;
  const fetch = (url: RequestInfo | URL, init?: RequestInit) =>
    isPage && String(url).endsWith('/output') && init?.method !== 'HEAD'
      ? Promise.resolve(new Response(PAGE, { headers: { 'content-type': 'text/plain' } }))
      : sandbox.fetch(url, init);
  const client = sandbox.client({ fetch, store: persistentStore() });
  const keys = async () => {
    const unfinished: string[] = [];
    for await (const { idempotencyKey } of client.unfinishedCreates()) unfinished.push(idempotencyKey);
    return unfinished;
  };
  const job = await client.images.createAndWait({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  expect(await saveAndDescribe(client, job)).toEqual(NOT_MEDIA);
  expect(await keys()).toEqual(['order-1']);
  isPage = false;
  expect(await saveAndDescribe(client, job)).toMatchObject({ contentType: 'image/png' });
  expect(await keys()).toEqual([]);
});

describe('a file that is not published yet', () => {
  const NOT_PUBLISHED = [
    ['ArcReel#241: 400', rejected(400, 'video_not_ready')],
    ['409', rejected(409, 'output_not_ready')],
    ['404', rejected(404, 'output_not_found')],
    ['425', rejected(425, 'too_early')],
  ] as const;

  it.each(NOT_PUBLISHED)('%s twice, then the file', async (_, rejection) => {
    const { client, requests } = clientOf([rejection, rejection, file(MP4)]);
    expect(await saveAndDescribe(client)).toMatchObject({ name: 'job_1.mp4' });
    expect(requests).toEqual(['GET', 'GET', 'GET']);
  });

  it.each(NOT_PUBLISHED)(
    '%s for 30 seconds: the error suggests a retry, not another paid job',
    async (_, rejection) => {
      const { client, requests } = clientOf([rejection]);
      expect(await saveAndDescribe(client)).toMatchObject({ recovery: 'retry_later' });
      expect(requests.length).toBeGreaterThan(6);
      expect(requests.length).toBeLessThan(12);
    },
  );

  it.each(NOT_PUBLISHED)(
    '%s long after completion: one request, and the error suggests a retry',
    async (_, rejection) => {
      const { client, requests } = clientOf([rejection], { completedAt: '2020-01-01T00:00:00.000Z' });
      expect(await saveAndDescribe(client)).toMatchObject({ recovery: 'retry_later' });
      expect(requests).toEqual(['GET']);
    },
  );

  it.each<[string, (client: GenClient, job: object) => Promise<object>]>([
    ['jobs.output', (client, job) => client.jobs.output(job as { id: string })],
    ['saveOutput', saveAndDescribe],
  ])('is recognized by the completion time of the job passed to %s', async (_, open) => {
    const { client, requests } = clientOf([rejected(400, 'video_not_ready'), file(MP4)], { completedAt: null });
    const outcome = await open(client, { id: 'job_1', completedAt: new Date().toISOString() });
    expect(outcome).not.toHaveProperty('recovery');
    expect(requests).toEqual(['GET', 'GET']);
  });

  it('is retried before an output handler responds', async () => {
    const { client } = clientOf([rejected(404, 'output_not_found'), file(MP4)]);
    expect((await serveFile(client)).status).toBe(200);
  });

  it("isn't retried for a failed job or an expired link", async () => {
    for (const job of [{ status: 'failed' }, { providerOutputExpiresAt: '2020-01-01T00:00:00.000Z' }]) {
      const { client, requests } = clientOf([rejected(404, 'output_not_found')], job);
      expect(await saveAndDescribe(client)).toMatchObject({ name: 'DownloadError', recovery: 'none' });
      expect(requests).toEqual(['GET']);
    }
  });
});

it('kener#841: a forwarded decoded response has no encoding headers', async () => {
  const headersSent = { ...GZIPPED, 'accept-ranges': 'bytes', 'content-type': 'video/mp4' };
  const { client } = clientOf([file(MP4, headersSent)]);
  const { body, headers } = await client.jobs.output('job_1');
  expect(Object.fromEntries(headers)).toEqual({ 'content-type': 'video/mp4', etag: 'W/"a"' });
  expect((await new Response(body, { headers }).arrayBuffer()).byteLength).toBe(MP4.length);
});

it('donsetch#290: a forwarded response has no invalid encoding', async () => {
  const { client } = clientOf([labeled(MP4, 'video/mp4', 'UTF-8')]);
  const { headers } = await client.jobs.output('job_1');
  expect(headers.get('content-encoding')).toBeNull();
  expect(headers.get('content-length')).toBe(`${MP4.length}`);
});

describe("an output handler's source", () => {
  const serveFrom = (response: Response, range: string) => {
    const source = () => ({ get: async () => response });
    return serveFile(clientOf([labeled(MP4, 'video/mp4')]).client, { headers: { range } }, { source });
  };

  it("isn't used if it sends a part without a Content-Range (RFC 9110, 15.3.7)", async () => {
    const response = await serveFrom(new Response('abc', { status: 206 }), 'bytes=0-2');
    expect([response.status, response.headers.get('content-range')]).toEqual([206, `bytes 0-2/${MP4.length}`]);
  });

  it('can send a 416 without a size, which adds no Content-Range (RFC 9110, 14.4)', async () => {
    const response = await serveFrom(new Response(null, { status: 416 }), 'bytes=99999-');
    expect([response.status, response.headers.get('content-range')]).toEqual([416, null]);
  });
});
