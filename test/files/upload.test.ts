import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import { PreflightError, UploadError } from '../../src/errors/index.js';
import type { UploadSource } from '../../src/schemas/upload.js';
import { hash, LoopbackService } from './loopback-service.js';
import { makeClient } from './make-client.js';

vi.mock('../../src/runtime/clock.js', async (load) => (await import('./quick-clock.js')).quickClock(load));

const PNG = new Uint8Array(300_000).map((_, at) => (at * 31) % 251);
PNG.set([
  0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 44, 0, 0, 1, 44,
]);

let service: LoopbackService;
let directory: string;
let file: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gen-upload-'));
  file = join(directory, 'fox.png');
  await writeFile(file, PNG);
});
afterAll(() => rm(directory, { recursive: true }));
beforeEach(async () => {
  service = await LoopbackService.start();
});
afterEach(() => service.close());

/** A stream of `bytes` in pieces. */
function streamOf(bytes: Uint8Array, piece = 10_000): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + piece));
      at += piece;
    },
  });
}

async function* iterate(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 7_777) yield bytes.slice(at, at + 7_777);
}

describe('every source arrives whole, with its length and the signed headers', () => {
  const sizeBytes = PNG.length;
  const sources: [string, () => UploadSource, { sizeBytes?: number; mimeType?: string }?][] = [
    ['a Blob', () => new Blob([PNG], { type: 'image/png' })],
    ['a Blob without a type', () => new Blob([PNG])],
    ['a File', () => new File([PNG], 'fox.png')],
    ['an ArrayBuffer', () => PNG.buffer],
    ['a view of a part', () => new DataView(new Uint8Array([9, ...PNG, 9]).buffer, 1, PNG.length)],
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
    const upload = await makeClient(service).uploads.upload(source(), options);
    expect(upload).toMatchObject({
      upload_id: 'up_1',
      mime_type: 'image/png',
      upload_type: 'IMAGE',
      file_size: sizeBytes,
    });
    expect(service.uploads.get('up_1')).toMatchObject({ bytes: sizeBytes, sha256: hash(PNG), completed: true });
    expect(service.log).toEqual(['POST /v1/uploads', 'PUT /bucket/:id', 'POST /v1/uploads/complete']);
  });
});

it('keeps the API key from storage and sends exactly the headers that were returned', async () => {
  await makeClient(service, { headers: { 'x-mine': 'for the service only' } }).uploads.upload(new Blob([PNG]));
  const put = service.seen.find(({ at }) => at === 'storage');
  expect(put?.headers).toMatchObject({ 'content-type': 'image/png', 'content-length': `${PNG.length}` });
  for (const header of ['authorization', 'x-mine', 'idempotency-key', 'transfer-encoding']) {
    expect(put?.headers).not.toHaveProperty(header);
  }
});

it('leaves out headers that only the runtime may set, however the service spells them', async () => {
  const client = makeClient(service);
  const created = await client.uploads.create({
    ...{ file_name: 'a.png', mime_type: 'image/png', file_size: PNG.length },
    upload_type: 'IMAGE',
  });
  const own = { 'Content-Length': '7', Host: 'evil.test', Connection: 'x', 'Transfer-Encoding': 'x', Expect: 'x' };
  await client.uploads.put({ ...created, headers: { ...created.headers, ...own } }, new Blob([PNG]));
  const put = service.seen.find(({ at }) => at === 'storage');
  expect(put?.headers['content-length']).toBe(`${PNG.length}`);
  expect(put?.headers.host).not.toBe('evil.test');
  expect(put?.headers).not.toHaveProperty('expect');
});

it('counts progress up to exactly the size, and never back', async () => {
  const told: number[] = [];
  await makeClient(service).uploads.upload(fromPath(file), {
    onProgress: ({ sentBytes, totalBytes }) => {
      expect(totalBytes).toBe(PNG.length);
      told.push(sentBytes);
    },
  });
  expect(told[0]).toBe(0);
  expect(told.at(-1)).toBe(PNG.length);
  expect(told).toEqual([...new Set(told)].sort((a, b) => a - b));
  expect(told.length).toBeGreaterThan(3);
});

describe('what is refused before a byte moves', () => {
  const over = (bytes: number, type: string) => ({
    name: 'big',
    size: bytes,
    type,
    stream: () => streamOf(new Uint8Array()),
  });
  it.each([
    ['image/png', 50],
    ['video/mp4', 200],
    ['audio/mpeg', 15],
  ])('a file of %s over %i MB', async (type, mb) => {
    const { uploads } = makeClient(service);
    const error = await uploads.upload(over(mb * 1024 * 1024 + 1, type)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PreflightError);
    expect(error).toMatchObject({ code: 'upload_too_large', param: 'source' });
    expect(service.log).toEqual([]);
  });

  it.each([
    ['image/png', 50],
    ['video/mp4', 200],
    ['audio/mpeg', 15],
  ])('and nothing of a file of %s of exactly %i MB', async (type, mb) => {
    service.faults.push({ step: 'create', status: 400, body: '{}' });
    const { uploads } = makeClient(service);
    const error = await uploads.upload(over(mb * 1024 * 1024, type)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'UploadError', step: 'create' });
  });

  it.each([
    ['a stream without sizeBytes', () => streamOf(PNG), {}, 'sizeBytes'],
    ['an empty file', () => new Blob([]), {}, 'source'],
    ['a Response without a length', () => new Response(PNG), {}, 'sizeBytes'],
    [
      'a Response whose length is that of its compressed form',
      () => new Response(PNG, { headers: { 'content-length': '7', 'content-encoding': 'br' } }),
      {},
      'sizeBytes',
    ],
    ['a wrong sizeBytes', () => new Blob([PNG]), { sizeBytes: 7 }, 'sizeBytes'],
    ['bytes of no known type', () => new Uint8Array(99), {}, 'mimeType'],
    ['a type that is no medium', () => new Blob(['{}'], { type: 'application/json' }), {}, 'mimeType'],
  ])('%s', async (_, source, options, param) => {
    const error = await makeClient(service)
      .uploads.upload(source(), options)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'PreflightError', code: 'upload_invalid', param });
    expect((error as Error).message).toContain(param === 'source' ? 'empty' : param);
    expect(service.log).toEqual([]);
  });

  it('an image too narrow for a character, when it is meant for one', async () => {
    const narrow = PNG.slice();
    narrow.set([0, 0, 1, 43], 16);
    const { uploads } = makeClient(service);
    await expect(uploads.upload(new Blob([narrow]), { purpose: 'character' })).rejects.toThrow('299 px');
    await expect(uploads.upload(streamOf(narrow), { purpose: 'character', sizeBytes: narrow.length })).rejects.toThrow(
      '300 px',
    );
    expect(service.log).toEqual([]);
    await uploads.upload(new Blob([PNG]), { purpose: 'character' });
    expect(service.uploads.get('up_1')?.sha256).toBe(hash(PNG));
  });

  it.each([
    ['a path as text', 'fox.png', 'fromPath'],
    ['nothing', undefined, 'not a source'],
    ['a refused Response', new Response('no', { status: 404 }), '404'],
  ])('%s', async (_, source, message) => {
    await expect(makeClient(service).uploads.upload(source as never)).rejects.toThrow(message);
    expect(service.log).toEqual([]);
  });
});

it('sends what the limits refuse, when preflight is off', async () => {
  const { uploads } = makeClient(service);
  const narrow = PNG.slice(0, 20_000);
  narrow.set([0, 0, 0, 1], 16);
  await uploads.upload(new Blob([narrow]), { purpose: 'character', preflight: false });
  expect(service.uploads.get('up_1')?.completed).toBe(true);
});

it('reports an UploadError for content that is shorter or longer than it said, and never completes it', async () => {
  for (const [sizeBytes, text] of [
    [PNG.length + 1, 'ended after'],
    [PNG.length - 1, 'longer than'],
  ] as const) {
    for (const source of [streamOf(PNG), () => streamOf(PNG), iterate(PNG)]) {
      const error = await makeClient(service)
        .uploads.upload(source, { sizeBytes })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UploadError);
      expect(error).toMatchObject({ step: 'put', left: 'nothing' });
      expect((error as Error).message).toContain(text);
    }
  }
  expect(service.uploads.size).toBe(0);
  expect(service.log).not.toContain('POST /v1/uploads/complete');
});
