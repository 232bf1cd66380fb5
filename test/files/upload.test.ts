import { getEventListeners } from 'node:events';
import { createReadStream, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import { ConnectionError, UploadError } from '../../src/errors/index.js';
import type { GenClient } from '../../src/index.js';
import type { UploadSource } from '../../src/schemas/upload.js';
import { hash, LoopbackService } from './loopback-service.js';
import { createClient, failure, openPerTest, quickPauses } from './support.js';

quickPauses();

const PNG = new Uint8Array(300_000).map((_, at) => (at * 31) % 251);
PNG.set([
  0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 44, 0, 0, 1, 44,
]);

const service = openPerTest(new LoopbackService());
let directory: string;
let file: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gen-upload-'));
  file = join(directory, 'fox.png');
  await writeFile(file, PNG);
});
afterAll(() => rm(directory, { recursive: true }));

const upload = (...[source, options]: Parameters<GenClient['uploads']['upload']>) =>
  createClient(service).uploads.upload(source, options);
const puts = () => service.log.filter((line) => line.startsWith('PUT'));

/** Creates a stream that yields `bytes` in chunks. */
function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + 10_000));
      at += 10_000;
    },
  });
}

async function* iterate(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 7_777) yield bytes.slice(at, at + 7_777);
}

describe('every source arrives in full, with its length and the signed headers', () => {
  const sizeBytes = PNG.length;
  const sources: [string, () => UploadSource, { sizeBytes?: number; mimeType?: string }?][] = [
    ['a Blob', () => new Blob([PNG], { type: 'image/png' })],
    ['a Blob without a type', () => new Blob([PNG])],
    ['a File', () => new File([PNG], 'fox.png')],
    ['an ArrayBuffer', () => PNG.buffer],
    ['a view of a buffer', () => new DataView(new Uint8Array([9, ...PNG, 9]).buffer, 1, PNG.length)],
    [
      'a Response',
      () => new Response(PNG, { headers: { 'content-length': `${sizeBytes}`, 'content-type': 'image/png' } }),
    ],
    ['a Response without headers', () => new Response(PNG), { sizeBytes }],
    ['a ReadableStream', () => streamOf(PNG), { sizeBytes }],
    ['an async iterable', () => iterate(PNG), { sizeBytes }],
    ['a Node stream', () => createReadStream(file), { sizeBytes }],
    ['a factory of streams', () => () => streamOf(PNG), { sizeBytes }],
    ['a path', () => fromPath(file)],
    ['a file URL', () => fromPath(new URL(`file://${file}`))],
  ];
  it.each(sources)('%s', async (_, source, options) => {
    const expected = { upload_id: 'up_1', mime_type: 'image/png', upload_type: 'IMAGE', file_size: sizeBytes };
    expect(await upload(source(), options)).toMatchObject(expected);
    expect(service.uploads.get('up_1')).toMatchObject({ bytes: sizeBytes, sha256: hash(PNG), completed: true });
    expect(service.log).toEqual(['POST /v1/uploads', 'PUT /bucket/:id', 'POST /v1/uploads/complete']);
  });
});

it('an upload sends exactly the returned headers to storage, without the API key', async () => {
  await createClient(service, { headers: { 'x-mine': 'for the service only' } }).uploads.upload(new Blob([PNG]));
  const put = service.requests.find(({ at }) => at === 'storage');
  expect(put?.headers).toMatchObject({ 'content-type': 'image/png', 'content-length': `${PNG.length}` });
  for (const header of ['authorization', 'x-mine', 'idempotency-key', 'transfer-encoding']) {
    expect(put?.headers).not.toHaveProperty(header);
  }
});

it('uploads.put omits headers that only the runtime can set, whatever their case', async () => {
  const client = createClient(service);
  const params = { file_name: 'a.png', mime_type: 'image/png', file_size: PNG.length, upload_type: 'IMAGE' } as const;
  const created = await client.uploads.create(params);
  const reserved = { 'Content-Length': '7', Host: 'evil.test', Connection: 'x', 'Transfer-Encoding': 'x', Expect: 'x' };
  await client.uploads.put({ ...created, headers: { ...created.headers, ...reserved } }, new Blob([PNG]));
  const put = service.requests.find(({ at }) => at === 'storage');
  expect(put?.headers['content-length']).toBe(`${PNG.length}`);
  expect(put?.headers.host).not.toBe('evil.test');
  expect(put?.headers).not.toHaveProperty('expect');
});

it('an upload reports progress exactly up to the size and never backward', async () => {
  const progress: number[] = [];
  await upload(fromPath(file), {
    onProgress: ({ sentBytes, totalBytes }) => {
      expect(totalBytes).toBe(PNG.length);
      progress.push(sentBytes);
    },
  });
  expect(progress[0]).toBe(0);
  expect(progress.at(-1)).toBe(PNG.length);
  expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
  expect(progress.length).toBeGreaterThan(3);
});

describe('an upload rejects before any bytes are sent:', () => {
  it.each([
    ['image/png', 50],
    ['video/mp4', 200],
    ['audio/mpeg', 15],
  ])('a file of %s over %i MB', async (type, mb) => {
    const source = { name: 'big', size: mb * 1024 * 1024 + 1, type, stream: () => streamOf(new Uint8Array()) };
    const expected = { name: 'PreflightError', code: 'upload_too_large', param: 'source' };
    expect(await failure(upload(source))).toMatchObject(expected);
    expect(service.log).toEqual([]);
  });

  it.each([
    ['a stream without sizeBytes', () => streamOf(PNG), {}, 'sizeBytes'],
    ['an empty file', () => new Blob([]), {}, 'source'],
    ['a Response without a length', () => new Response(PNG), {}, 'sizeBytes'],
    [
      'a compressed Response, whose content-length is the compressed size',
      () => new Response(PNG, { headers: { 'content-length': '7', 'content-encoding': 'br' } }),
      {},
      'sizeBytes',
    ],
    ['a wrong sizeBytes', () => new Blob([PNG]), { sizeBytes: 7 }, 'sizeBytes'],
    ['a fractional sizeBytes', () => PNG, { sizeBytes: 1.5 }, 'sizeBytes'],
    ['bytes of unknown type', () => new Uint8Array(99), {}, 'mimeType'],
    ['a type other than media', () => new Blob(['{}'], { type: 'application/json' }), {}, 'mimeType'],
  ])('%s', async (_, source, options, param) => {
    const error = await failure(upload(source(), options));
    expect(error).toMatchObject({ name: 'PreflightError', code: 'upload_invalid', param });
    expect(error.message).toContain(param === 'source' ? 'empty' : param);
    expect(service.log).toEqual([]);
  });

  it('an image that is too narrow for a character', async () => {
    const narrow = PNG.slice();
    narrow.set([0, 0, 1, 43], 16);
    const purpose = 'character';
    await expect(upload(new Blob([narrow]), { purpose })).rejects.toThrow('299 px');
    await expect(upload(streamOf(narrow), { purpose, sizeBytes: narrow.length })).rejects.toThrow('300 px');
    expect(service.log).toEqual([]);
    await upload(new Blob([narrow]), { purpose, preflight: false });
    await upload(new Blob([PNG]), { purpose });
    expect(service.uploads.get('up_2')?.sha256).toBe(hash(PNG));
  });
});

it.each([
  ['shorter', PNG.length + 1, 'ended after'],
  ['longer', PNG.length - 1, 'longer than'],
])('an upload rejects content that is %s than announced, without completing the upload', async (_, sizeBytes, text) => {
  for (const source of [streamOf(PNG), () => streamOf(PNG), iterate(PNG)]) {
    const error = await failure(upload(source, { sizeBytes }));
    expect(error).toMatchObject({ name: 'UploadError', step: 'put' });
    expect(error.message).toContain(text);
  }
  expect(service.uploads.size).toBe(0);
  expect(service.log).not.toContain('POST /v1/uploads/complete');
});

const MP4 = new Uint8Array(3_000_000).map((_, at) => (at * 17) % 253);
MP4.set([0, 0, 0, 24, ...Buffer.from('ftypisom')]);
const blob = () => new Blob([MP4], { type: 'video/mp4' });
const stream = () => blob().stream();

it('an upload rejects a file that is rewritten with the same size during the upload', async () => {
  const path = join(directory, 'changing.png');
  await writeFile(path, PNG);
  let isRewritten = false;
  const onProgress = ({ sentBytes }: { readonly sentBytes: number }) => {
    if (sentBytes === 0 || isRewritten) return;
    isRewritten = true;
    writeFileSync(path, PNG.toReversed());
  };
  const error = await failure(upload(fromPath(path), { onProgress, maxRetries: 0 }));
  expect(error).toMatchObject({ name: 'UploadError', step: 'put' });
  expect(error.message).toMatch(/changing\.png" changed while it was sent\. Upload it again\./);
  await expect.poll(() => service.log).toContain('DELETE /v1/uploads/:id');
});

describe('the PUT', () => {
  it('is retried in full after an interruption, and its progress restarts', async () => {
    service.faults.push({ step: 'put', resetAfter: 1_000_000 }, { step: 'put', status: 503 });
    const reported: number[] = [];
    await upload(blob(), { onProgress: ({ sentBytes }) => reported.push(sentBytes) });
    expect(puts()).toHaveLength(3);
    expect(service.uploads.get('up_1')).toMatchObject({ bytes: MP4.length, sha256: hash(MP4), completed: true });
    expect(reported.filter((bytes) => bytes === 0)).toHaveLength(3);
    expect([Math.max(...reported), reported.at(-1)]).toEqual([MP4.length, MP4.length]);
  });

  it("isn't retried for a stream that can be read only once, and the error explains why", async () => {
    service.faults.push({ step: 'put', resetAfter: 100_000 });
    const error = await failure(upload(stream(), { sizeBytes: MP4.length }));
    expect(error).toBeInstanceOf(UploadError);
    expect(error).toMatchObject({ step: 'put', uploadId: 'up_1', cause: expect.any(ConnectionError) });
    expect(error.message).toMatch(/"put" \(up_1\).*ReadableStream can be read only once.*fromPath/);
    expect(service.log).toEqual(['POST /v1/uploads', 'PUT /bucket/:id', 'DELETE /v1/uploads/:id']);
  });

  it('is retried with the same bytes from a factory', async () => {
    service.faults.push({ step: 'put', resetAfter: 10 });
    await upload(stream, { sizeBytes: MP4.length });
    expect(service.uploads.get('up_1')?.sha256).toBe(hash(MP4));
  });
});

describe('a storage error', () => {
  const STALE: readonly [number, string][] = [
    [403, 'AccessDenied'],
    [403, 'SignatureDoesNotMatch'],
    [400, 'RequestTimeout'],
  ];
  const rejectPuts = (status: number, code: string, times: number) =>
    service.faults.push(...Array(times).fill({ step: 'put', status, code }));

  it.each(STALE)('%i %s restarts the upload once, from its first step', async (status, code) => {
    rejectPuts(status, code, 1);
    expect(await upload(blob(), { idempotencyKey: 'upload-1' })).toMatchObject({ upload_id: 'up_2' });
    expect(service.log.map((line) => line.split(' ')[0])).toEqual(['POST', 'PUT', 'DELETE', 'POST', 'PUT', 'POST']);
    expect(service.uploads.get('up_2')).toMatchObject({ sha256: hash(MP4), completed: true });
  });

  it.each(STALE)("%i %s twice isn't reported as a problem with the API key", async (status, code) => {
    rejectPuts(status, code, 2);
    const error = await failure(upload(blob()));
    expect(error).toMatchObject({ name: 'UploadError', step: 'put', recovery: 'retry' });
    expect(error.cause).toMatchObject({ name: 'APIError', status, code, recovery: 'retry' });
    expect(service.uploads.size).toBe(0);
  });

  it("isn't reported as a problem with the API key for a stream that can't be retried", async () => {
    rejectPuts(403, 'AccessDenied', 1);
    const error = await failure(upload(stream(), { sizeBytes: MP4.length }));
    expect(error).toMatchObject({ step: 'put', recovery: 'retry' });
    expect(puts()).toHaveLength(1);
  });

  it.each([401, 400, 404, 412])("%i isn't retried, and can be retried by the caller", async (status) => {
    rejectPuts(status, 'Fault', 1);
    const error = await failure(upload(blob()));
    expect(error).toMatchObject({ step: 'put', recovery: 'retry' });
    expect(puts()).toHaveLength(1);
  });
});

describe('when a step fails, an upload', () => {
  it('rejects with the step and the cause', async () => {
    const body = '{"error":{"code":"upload_invalid","message":"No such type."}}';
    service.faults.push({ step: 'create', status: 400, body });
    const error = await failure(upload(blob()));
    expect(error).toMatchObject({ step: 'create', uploadId: undefined, cause: { code: 'upload_invalid' } });
    expect(error.message).toContain('No such type.');
    expect(service.log).toEqual(['POST /v1/uploads']);
  });

  it('repeats its first step with the same idempotency key if the response is lost', async () => {
    service.faults.push({ step: 'create', resetAfter: 0 });
    await upload(blob());
    const [first, second] = service.requests.filter(({ path }) => path === '/v1/uploads');
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(first?.headers['idempotency-key']).toBeTruthy();
  });

  it('retries a completion without a response, and treats a conflict as success', async () => {
    service.faults.push(
      { step: 'complete', resetAfter: 0 },
      { step: 'complete', status: 409, body: '{"error":{"code":"already_complete"}}' },
    );
    expect(await upload(blob())).toMatchObject({ upload_id: 'up_1' });
    expect(service.log).not.toContain('DELETE /v1/uploads/:id');
  });

  it('deletes the upload if its completion fails', async () => {
    service.faults.push({ step: 'complete', status: 422, body: '{"error":{"code":"upload_invalid"}}' });
    const error = await failure(upload(blob()));
    expect(error).toMatchObject({ step: 'complete', uploadId: 'up_1' });
    expect(service.uploads.size).toBe(0);
  });

  it("rejects without the API key or the URL's signature in the error", async () => {
    service.faults.push({ step: 'put', status: 400 });
    const error = await failure(upload(blob()));
    const text = `${error.message} ${error.stack} ${JSON.stringify(error)} ${JSON.stringify(error.cause)}`;
    expect(text).not.toMatch(/key-for-tests|signature=/);
  });
});

describe('an abort', () => {
  it('during the PUT rejects immediately with its reason and releases the source', async () => {
    const abort = new AbortController();
    const cancel = vi.fn();
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(50_000)),
      cancel,
    });
    const reason = new Error('enough');
    const work = upload(endless, {
      sizeBytes: 100_000_000,
      mimeType: 'video/mp4',
      signal: abort.signal,
      onProgress: ({ sentBytes }) => sentBytes > 1_000_000 && abort.abort(reason),
    });
    expect(await failure(work)).toBe(reason);
    await expect.poll(() => service.log).toContain('DELETE /v1/uploads/:id');
    await expect.poll(() => service.uploads.size).toBe(0);
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(cancel).toHaveBeenCalledOnce();
  });

  it("before the source's first byte rejects immediately", async () => {
    const stalled = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
    const abort = new AbortController();
    const work = upload(stalled, { sizeBytes: 9, signal: abort.signal });
    abort.abort('stop');
    expect(await failure(work)).toBe('stop');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(service.log).toEqual([]);
  });
});

describe('the separate steps', () => {
  const params = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: MP4.length, upload_type: 'VIDEO' } as const;

  it('return the same result as the single call', async () => {
    const { uploads } = createClient(service);
    const created = await uploads.create(params);
    expect(created.headers).toEqual({ 'Content-Type': 'video/mp4', 'x-storage-meta-owner': 'workspace-1' });
    const reported: number[] = [];
    const response = await uploads.put(created, stream(), {
      sizeBytes: MP4.length,
      onProgress: ({ sentBytes }) => reported.push(sentBytes),
    });
    expect(response.headers.get('etag')).toBe(`"${hash(MP4)}"`);
    expect(reported.at(-1)).toBe(MP4.length);
    expect((await uploads.complete(created.upload_id)).upload_id).toBe('up_1');
    expect(await uploads.delete(created.upload_id)).toEqual({ deleted: true });
    await expect(uploads.delete(created.upload_id)).rejects.toMatchObject({ code: 'upload_not_found' });
  });

  it("send the API key with the service's own PUT", async () => {
    const { uploads } = createClient(service);
    const created = await uploads.create(params);
    await uploads.put({ ...created, direct_upload_url: `/v1/uploads?upload_id=${created.upload_id}` }, blob());
    const headers = { authorization: 'Bearer key-for-tests' };
    expect(service.requests.at(-1)).toMatchObject({ at: 'service', bytes: MP4.length, headers });
  });

  it('distinguish source errors from connection errors', async () => {
    const { uploads } = createClient(service);
    const created = await uploads.create({ ...params, file_size: 100 });
    const broken = () => new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error('The disk failed.')) });
    const error = await failure(uploads.put(created, broken, { sizeBytes: 100 }));
    expect(error).toMatchObject({ name: 'UploadError', step: 'put' });
    expect(error.message).toContain('The disk failed.');
  });
});
