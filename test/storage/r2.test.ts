// Copies to R2 and the handler in workerd, without Node APIs.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hash, LoopbackService } from '../files/loopback-service.js';
import { createMovie } from '../files/support.js';
import { miniflare, startWorker, type TestBucket, type TestWorker } from './worker.js';

const MOVIE = createMovie(1_000_000);
const SHA256 = hash(MOVIE);

const WORKER = `
import { GenClient } from 'gen-client';
import { copyOutput, createOutputHandler, r2 } from 'gen-client/storage';

export default {
  async fetch(request, env) {
    const client = new GenClient({ apiKey: 'key-for-tests', baseUrl: env.BASE_URL });
    const url = new URL(request.url);
    const name = url.searchParams.get('name') ?? 'fox.mp4';
    try {
      switch (url.pathname) {
        case '/copy': {
          const overwrite = url.searchParams.has('overwrite');
          return Response.json(await copyOutput(client, 'job_1', r2(env.BUCKET, name), { overwrite }));
        }
        case '/put': {
          // R2 requires a stream of known length.
          const { body } = await client.jobs.output('job_1', { resume: true });
          const { size } = await env.BUCKET.put(name, body);
          return Response.json({ size });
        }
        case '/plain': return await client.jobs.output('job_1', { resume: true });
        default: {
          const source = url.searchParams.has('copy') ? () => r2(env.BUCKET, name) : undefined;
          return await createOutputHandler({ client, authorize: () => true, source })(request);
        }
      }
    } catch (error) {
      return Response.json({ ...error, name: error.name, message: error.message }, { status: 500 });
    }
  },
};`;

describe.skipIf(!miniflare)('R2 in workerd', () => {
  let service: LoopbackService;
  let worker: TestWorker;
  let bucket: TestBucket;
  beforeAll(async () => {
    service = await LoopbackService.start();
    worker = await startWorker(WORKER, { BASE_URL: service.baseUrl });
    bucket = await worker.getR2Bucket('BUCKET');
  });
  afterAll(async () => {
    await worker.dispose();
    await service.close();
  });
  beforeEach(async () => {
    await bucket.delete('fox.mp4');
    service.requests.length = 0;
    service.addOutput('job_1', { body: MOVIE });
  });

  const request = (path: string, init?: RequestInit) => worker.dispatchFetch(`http://worker.test${path}`, init);
  const json = async (path: string) => (await request(path)).json() as Promise<Record<string, unknown>>;
  const bytes = async (name = 'fox.mp4') =>
    Buffer.from((await (await bucket.get(name))?.arrayBuffer()) ?? new ArrayBuffer());

  it('stores the complete file with its digest, type, and job', async () => {
    expect(await json('/copy')).toEqual({
      sizeBytes: MOVIE.length,
      contentType: 'video/mp4',
      sha256: SHA256,
      etag: expect.stringMatching(/^".+"$/),
      existed: false,
    });
    expect((await bytes()).equals(MOVIE)).toBe(true);
    expect(await bucket.head('fox.mp4')).toMatchObject({
      customMetadata: { 'gen-job': 'job_1' },
      httpMetadata: { contentType: 'video/mp4' },
    });
  });

  it('recognizes the object, and fails for another object', async () => {
    await json('/copy');
    expect(await json('/copy')).toMatchObject({ existed: true, sizeBytes: MOVIE.length });
    expect(service.downloads).toHaveLength(1);
    await bucket.put('fox.mp4', 'mine');
    expect(await json('/copy')).toMatchObject({ name: 'StorageError', code: 'object_exists', store: 'r2' });
    expect((await bytes()).toString()).toBe('mine');
    expect(await json('/copy?overwrite')).toMatchObject({ existed: false, sha256: SHA256 });
  });

  it('stores the complete file despite three interruptions', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [300_000, 5, 400_000] });
    expect(await json('/copy')).toMatchObject({ sha256: SHA256 });
    expect((await bytes()).equals(MOVIE)).toBe(true);
  });

  it('stores one object for ten concurrent copies, and the other nine find it', async () => {
    const copies = await Promise.all(Array.from({ length: 10 }, () => json('/copy')));
    expect(copies.map(({ existed }) => existed).sort()).toEqual([...Array(1).fill(false), ...Array(9).fill(true)]);
  });

  it("accepts jobs.output's body unchanged, because its length is known", async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [400_000] });
    expect(await json('/put')).toEqual({ size: MOVIE.length });
    expect((await bytes()).equals(MOVIE)).toBe(true);
  });

  it('serves jobs.output with its length', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [400_000] });
    const response = await request('/plain');
    expect(response.headers.get('content-length')).toBe(`${MOVIE.length}`);
    expect(Buffer.from(await response.arrayBuffer()).equals(MOVIE)).toBe(true);
  });

  it.each([
    ['the service', '/files/job_1'],
    ['the R2 copy', '/files/job_1?copy'],
  ])('serves ranges, HEAD, 304, and 416 from %s', async (_, path) => {
    await json('/copy');
    service.requests.length = 0;
    const complete = await request(path);
    expect([complete.status, complete.headers.get('content-length')]).toEqual([200, `${MOVIE.length}`]);
    expect(Buffer.from(await complete.arrayBuffer()).equals(MOVIE)).toBe(true);
    const part = await request(path, { headers: { range: 'bytes=20-29' } });
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 20-29/${MOVIE.length}`]);
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(MOVIE.slice(20, 30));
    const etag = complete.headers.get('etag') ?? '';
    expect((await request(path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    const changed = await request(path, { headers: { range: 'bytes=0-9', 'if-range': '"other"' } });
    expect(changed.status).toBe(200);
    await changed.body?.cancel();
    const unsatisfiable = await request(path, { headers: { range: 'bytes=9999999-' } });
    expect([unsatisfiable.status, unsatisfiable.headers.get('content-range')]).toEqual([
      416,
      `bytes */${MOVIE.length}`,
    ]);
    const head = await request(path, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, `${MOVIE.length}`]);
    if (path.includes('copy')) expect(service.requests).toEqual([]);
  });
});
