// Download responses as services, storages, and proxies send them. Each row lists its source.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { saveOutput } from '../../../src/adapters/node/index.js';
import { copyOutput, createOutputHandler } from '../../../src/adapters/storage/index.js';
import { GenClient } from '../../../src/index.js';
import { createSandbox } from '../../../src/sandbox/index.js';
import { quickPauses } from '../../files/support.js';
import { outlivingStore } from '../../support/outliving-store.js';

quickPauses();

const latin1 = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));
const filled = (head: string) => latin1(head + '\x07'.repeat(5_000));
const MP4 = filled('\0\0\0\x18ftypmp42\0\0\0\0mp42isom');
const WEBP = filled('RIFF\x80\x13\0\0WEBPVP8 ');
const PAGE = latin1('<!DOCTYPE html><html><body>Sign in to continue</body></html>');
const RAW = filled('\x01\x02');

interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body: Uint8Array<ArrayBuffer> | string;
}

const rejected = (status: number, code: string): Answer => ({ status, body: JSON.stringify({ error: { code } }) });
const file = (body: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Answer => ({
  body,
  headers: { 'content-length': `${body.length}`, etag: '"a"', ...headers },
});

/** Creates a client whose service sends these responses for the file. The last one repeats. */
function clientOf(responses: readonly Answer[], job: object = {}) {
  const requests: string[] = [];
  const left = [...responses];
  const fetch = async (url: string, init: RequestInit = {}) => {
    if (!url.endsWith('/output')) {
      const found = { id: 'job_1', status: 'completed', completedAt: new Date().toISOString(), ...job };
      return Response.json({ success: true, data: { job: found } });
    }
    requests.push(init.method ?? 'GET');
    const { status = 200, headers = {}, body } = (left.length > 1 ? left.shift() : left[0]) ?? rejected(500, 'none');
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
  const client = new GenClient({
    apiKey: 'k',
    baseUrl: 'https://service.test',
    fetch,
    maxRetries: 0,
    rateLimit: 'off',
  });
  return { client, requests };
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gen-field-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function saved(client: GenClient, job: object | string = 'job_1') {
  const outcome = await saveOutput(client, job as string, `${directory}/`).then(
    ({ path, contentType, sizeBytes }) => ({ name: basename(path), contentType, sizeBytes }),
    ({ name, code, recovery }) => ({ name, code, recovery }),
  );
  if (!('sizeBytes' in outcome)) expect(await readdir(directory)).toEqual([]);
  return outcome;
}
async function copied(client: GenClient) {
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
const NOT_MEDIA = { name: 'DownloadError', code: 'not_media', recovery: 'retry' };

describe.each<[string, string, Answer, { readonly name: string; readonly contentType: string | undefined }]>([
  [
    'neurolink#1679',
    'WebP as image/png',
    file(WEBP, { 'content-type': 'image/png' }),
    { name: 'job_1.webp', contentType: 'image/webp' },
  ],
  [
    'S3 default',
    'MP4 as octet-stream',
    file(MP4, { 'content-type': 'application/octet-stream' }),
    { name: 'job_1.mp4', contentType: 'video/mp4' },
  ],
  ['RFC 9110, 8.3', 'MP4 without a type', file(MP4, {}), { name: 'job_1.mp4', contentType: 'video/mp4' }],
  [
    'Apache default',
    'MP4 as text/html',
    file(MP4, { 'content-type': 'text/html' }),
    { name: 'job_1.mp4', contentType: 'video/mp4' },
  ],
  [
    'RFC 6381',
    'codecs are retained',
    file(MP4, { 'content-type': 'video/mp4; codecs="avc1"' }),
    { name: 'job_1.mp4', contentType: 'video/mp4; codecs="avc1"' },
  ],
  [
    'own',
    'unrecognized bytes',
    file(RAW, { 'content-type': 'video/webm' }),
    { name: 'job_1.webm', contentType: 'video/webm' },
  ],
  [
    'donsetch#290',
    'Content-Encoding: UTF-8',
    file(MP4, { 'content-type': 'video/mp4', 'content-encoding': 'UTF-8' }),
    { name: 'job_1.mp4', contentType: 'video/mp4' },
  ],
  [
    'kener#841',
    'Content-Encoding: none',
    file(MP4, { 'content-type': 'video/mp4', 'content-encoding': 'none' }),
    { name: 'job_1.mp4', contentType: 'video/mp4' },
  ],
  [
    'nginx gzip',
    'gzip, decoded, HEAD without a size',
    { body: MP4, headers: { 'content-encoding': 'gzip', 'content-length': '99' } },
    { name: 'job_1.mp4', contentType: 'video/mp4' },
  ],
])('%s: %s', (_source, _what, answer, right) => {
  it("is saved with its bytes' name and type", async () => {
    expect(await saved(clientOf([answer]).client)).toEqual({ ...right, sizeBytes: answer.body.length });
  });

  it('is copied with its type', async () => {
    expect(await copied(clientOf([answer]).client)).toEqual({
      contentType: right.contentType,
      sizeBytes: answer.body.length,
    });
  });

  // A range of encoded bytes isn't a range of the file.
  const ways = answer.headers?.['content-encoding'] === 'gzip' ? ['GET'] : ['GET', 'HEAD', 'bytes=0-1', 'bytes=900-'];
  it.each(ways)('is served with its type for %s', async (requested) => {
    const handler = createOutputHandler({ client: clientOf([answer]).client, authorize: () => true });
    const init = requested.startsWith('bytes') ? { headers: { range: requested } } : { method: requested };
    const response = await handler(new Request('https://app.test/job_1', init));
    const type = response.headers.get('content-type');
    // Without the first bytes, a label that browsers support is retained.
    expect([right.contentType, ...(init.method === 'GET' ? [] : [answer.headers?.['content-type']])]).toContain(type);
    expect(response.headers.get('content-disposition')).toMatch(/^inline/);
  });
});

describe.each<[string, Answer]>([
  ['unifi-protect#515: a sign-in page as text/plain', file(PAGE, { 'content-type': 'text/plain' })],
  ['a sign-in page as a video', file(PAGE, { 'content-type': 'video/mp4' })],
  ['a sign-in page without a type or a length', { body: PAGE }],
  ['an error with status 200', file(latin1('{"success":false}'), { 'content-type': 'application/octet-stream' })],
  ["a storage's XML", file(latin1('<?xml version="1.0"?><Error/>'), { 'content-type': 'binary/octet-stream' })],
  ['unrecognized bytes as a page', file(RAW, { 'content-type': 'text/html' })],
])('%s', (_, response) => {
  it('is neither saved nor copied, and the file can be saved later', async () => {
    const { client } = clientOf([response]);
    expect(await saved(client)).toEqual(NOT_MEDIA);
    expect(await copied(client)).toEqual(NOT_MEDIA);
    const right = clientOf([response, file(MP4, {})]);
    expect(await saved(right.client)).toEqual(NOT_MEDIA);
    expect(await saved(right.client)).toMatchObject({ name: 'job_1.mp4' });
  });

  it('gets a 502 from an output handler', async () => {
    const handler = createOutputHandler({ client: clientOf([response]).client, authorize: () => true });
    expect((await handler(new Request('https://app.test/job_1'))).status).toBe(502);
  });
});

it('unifi-protect#515: after an HTML page, the create stays unfinished until its file is saved', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  let isPage = true;
  const fetch = (url: RequestInfo | URL, init?: RequestInit) =>
    isPage && String(url).endsWith('/output') && init?.method !== 'HEAD'
      ? Promise.resolve(new Response(PAGE, { headers: { 'content-type': 'text/plain' } }))
      : sandbox.fetch(url, init);
  const client = sandbox.client({ fetch, store: outlivingStore() });
  const keys = async () => {
    const found: string[] = [];
    for await (const { idempotencyKey } of client.unfinishedCreates()) found.push(idempotencyKey);
    return found;
  };
  const job = await client.images.createAndWait({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  expect(await saved(client, job)).toEqual(NOT_MEDIA);
  expect(await keys()).toEqual(['order-1']);
  isPage = false;
  expect(await saved(client, job)).toMatchObject({ contentType: 'image/png' });
  expect(await keys()).toEqual([]);
});

describe('a file that is not published yet', () => {
  const early = [
    ['ArcReel#241: 400', rejected(400, 'video_not_ready')],
    ['409', rejected(409, 'output_not_ready')],
    ['404', rejected(404, 'output_not_found')],
    ['425', rejected(425, 'too_early')],
  ] as const;

  it.each(early)('%s twice, then the file', async (_, rejection) => {
    const { client, requests } = clientOf([rejection, rejection, file(MP4, {})]);
    expect(await saved(client)).toMatchObject({ name: 'job_1.mp4' });
    expect(requests).toEqual(['GET', 'GET', 'GET']);
  });

  it.each(early)('%s for 30 seconds: the error suggests a retry, not another paid job', async (_, rejection) => {
    const { client, requests } = clientOf([rejection]);
    expect(await saved(client)).toMatchObject({ recovery: 'retry_later' });
    expect(requests.length).toBeGreaterThan(6);
    expect(requests.length).toBeLessThan(12);
  });

  it.each(early)('%s later: one request, with the same advice', async (_, rejection) => {
    const { client, requests } = clientOf([rejection], { completedAt: '2020-01-01T00:00:00.000Z' });
    expect(await saved(client)).toMatchObject({ recovery: 'retry_later' });
    expect(requests).toEqual(['GET']);
  });

  it('is recognized if the job was passed', async () => {
    const { client } = clientOf([rejected(400, 'video_not_ready'), file(MP4, {})], { completedAt: null });
    const job = { id: 'job_1', completedAt: new Date().toISOString() };
    expect((await client.jobs.output(job)).status).toBe(200);
  });

  it('is recognized if the job was passed to saveOutput', async () => {
    const { client } = clientOf([rejected(400, 'video_not_ready'), file(MP4, {})], { completedAt: null });
    const job = { id: 'job_1', completedAt: new Date().toISOString() };
    expect(await saved(client, job)).toMatchObject({ name: 'job_1.mp4' });
  });

  it('makes an output handler wait, too', async () => {
    const { client } = clientOf([rejected(404, 'output_not_found'), file(MP4, {})]);
    const response = await createOutputHandler({ client, authorize: () => true })(
      new Request('https://app.test/job_1'),
    );
    expect(response.status).toBe(200);
  });

  it("doesn't delay a failed job or an expired link", async () => {
    for (const job of [{ status: 'failed' }, { providerOutputExpiresAt: '2020-01-01T00:00:00.000Z' }]) {
      const { client, requests } = clientOf([rejected(404, 'output_not_found')], job);
      expect(await saved(client)).toMatchObject({ name: 'DownloadError', recovery: 'none' });
      expect(requests).toEqual(['GET']);
    }
  });
});

it('kener#841: a forwarded decoded response has no encoding headers', async () => {
  const encoded = { 'content-encoding': 'gzip', 'content-length': '99', 'accept-ranges': 'bytes' };
  const { client } = clientOf([file(MP4, { ...encoded, 'content-type': 'video/mp4' })]);
  const { body, headers } = await client.jobs.output('job_1');
  expect(Object.fromEntries(headers)).toEqual({ 'content-type': 'video/mp4', etag: 'W/"a"' });
  expect((await new Response(body, { headers }).arrayBuffer()).byteLength).toBe(MP4.length);
});

it('donsetch#290: a forwarded response has no invalid encoding', async () => {
  const { client } = clientOf([file(MP4, { 'content-type': 'video/mp4', 'content-encoding': 'UTF-8' })]);
  const { headers } = await client.jobs.output('job_1');
  expect(headers.get('content-encoding')).toBeNull();
  expect(headers.get('content-length')).toBe(`${MP4.length}`);
});

describe("an output handler's source", () => {
  const shown = async (response: Response | undefined, requested: Record<string, string> = {}) => {
    const { client } = clientOf([file(MP4, { 'content-type': 'video/mp4' })]);
    const source = () => ({ get: async () => response?.clone() });
    const handler = createOutputHandler({ client, authorize: () => true, source });
    return handler(new Request('https://app.test/job_1', { headers: requested }));
  };

  it("isn't used if it sends a part without its range (RFC 9110, 15.3.7)", async () => {
    const response = await shown(new Response('abc', { status: 206 }), { range: 'bytes=0-2' });
    expect([response.status, response.headers.get('content-range')]).toEqual([206, `bytes 0-2/${MP4.length}`]);
  });

  it('causes no Content-Range if it rejects a range without a size (RFC 9110, 14.4)', async () => {
    const response = await shown(new Response(null, { status: 416 }), { range: 'bytes=99999-' });
    expect([response.status, response.headers.get('content-range')]).toEqual([416, null]);
  });
});
