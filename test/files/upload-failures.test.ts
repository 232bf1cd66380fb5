import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { APIError, ConnectionError, UploadError } from '../../src/errors/index.js';
import { hash, LoopbackService } from './loopback-service.js';
import { makeClient } from './make-client.js';

vi.mock('../../src/runtime/clock.js', async (load) => (await import('./quick-clock.js')).quickClock(load));

const MP4 = new Uint8Array(3_000_000).map((_, at) => (at * 17) % 253);
MP4.set([0, 0, 0, 24, ...Buffer.from('ftypisom')]);

let service: LoopbackService;
beforeEach(async () => {
  service = await LoopbackService.start();
});
afterEach(() => service.close());

const blob = () => new Blob([MP4], { type: 'video/mp4' });
const stream = () => blob().stream();
const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('it did not fail'),
    (reason: unknown) => reason as UploadError,
  );

describe('the PUT', () => {
  it('is repeated whole after a cut, and its progress begins anew', async () => {
    service.faults.push({ step: 'put', resetAfter: 1_000_000 }, { step: 'put', status: 503 });
    const told: number[] = [];
    await makeClient(service).uploads.upload(blob(), { onProgress: ({ sentBytes }) => told.push(sentBytes) });
    expect(service.log.filter((line) => line.startsWith('PUT'))).toHaveLength(3);
    expect(service.uploads.get('up_1')).toMatchObject({ bytes: MP4.length, sha256: hash(MP4), completed: true });
    expect(told.filter((bytes) => bytes === 0)).toHaveLength(3);
    expect(Math.max(...told)).toBe(MP4.length);
    expect(told.at(-1)).toBe(MP4.length);
  });

  it('is not repeated for a stream that can be read only once, and the error says so', async () => {
    service.faults.push({ step: 'put', resetAfter: 100_000 });
    const error = await failure(makeClient(service).uploads.upload(stream(), { sizeBytes: MP4.length }));
    expect(error).toBeInstanceOf(UploadError);
    expect(error).toMatchObject({ step: 'put', uploadId: 'up_1', left: 'nothing' });
    expect(error.cause).toBeInstanceOf(ConnectionError);
    expect(error.message).toMatch(
      /"put" \(up_1\).*ReadableStream can be read only once.*fromPath.*Nothing is left on the service/,
    );
    expect(service.log).toEqual(['POST /v1/uploads', 'PUT /bucket/:id', 'DELETE /v1/uploads/:id']);
  });

  it('asks for no new URL when the refusal is of another kind', async () => {
    service.faults.push({ step: 'put', status: 403, body: 'Signature does not match' });
    const error = await failure(makeClient(service).uploads.upload(blob()));
    expect(error.cause).toBeInstanceOf(APIError);
    expect(service.log).toEqual(['POST /v1/uploads', 'PUT /bucket/:id', 'DELETE /v1/uploads/:id']);
  });

  it('is repeated with the same fresh bytes from a factory', async () => {
    service.faults.push({ step: 'put', resetAfter: 10 });
    await makeClient(service).uploads.upload(stream, { sizeBytes: MP4.length });
    expect(service.uploads.get('up_1')?.sha256).toBe(hash(MP4));
  });
});

describe('a step that fails', () => {
  it('names the create, after which nothing is left', async () => {
    service.faults.push({
      step: 'create',
      status: 400,
      body: '{"error":{"code":"upload_invalid","message":"No such type."}}',
    });
    const error = await failure(makeClient(service).uploads.upload(blob()));
    expect(error).toMatchObject({
      step: 'create',
      uploadId: undefined,
      left: 'nothing',
      cause: { code: 'upload_invalid' },
    });
    expect(error.message).toContain('No such type.');
    expect(service.log).toEqual(['POST /v1/uploads']);
  });

  it('repeats a create that got no answer under the same key', async () => {
    service.faults.push({ step: 'create', resetAfter: 0 });
    await makeClient(service).uploads.upload(blob());
    const [first, second] = service.seen.filter(({ path }) => path === '/v1/uploads');
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(first?.headers['idempotency-key']).toBeTruthy();
  });

  it('repeats a complete that got no answer, and takes a conflict for its success', async () => {
    service.faults.push(
      { step: 'complete', resetAfter: 0 },
      { step: 'complete', status: 409, body: '{"error":{"code":"already_complete"}}' },
    );
    expect(await makeClient(service).uploads.upload(blob())).toMatchObject({ upload_id: 'up_1' });
    expect(service.log).not.toContain('DELETE /v1/uploads/:id');
  });

  it('deletes an upload that could not be completed', async () => {
    service.faults.push({ step: 'complete', status: 422, body: '{"error":{"code":"upload_invalid"}}' });
    const error = await failure(makeClient(service).uploads.upload(blob()));
    expect(error).toMatchObject({ step: 'complete', uploadId: 'up_1', left: 'nothing' });
    expect(service.uploads.size).toBe(0);
  });

  it('leaves it there with cleanup: false, and says so', async () => {
    service.faults.push({ step: 'complete', status: 422 });
    const error = await failure(makeClient(service).uploads.upload(blob(), { cleanup: false }));
    expect(error).toMatchObject({ step: 'complete', uploadId: 'up_1', left: 'upload' });
    expect(error.message).toContain('uploads.delete');
    expect([...service.uploads.keys()]).toEqual(['up_1']);
  });

  it('says that it does not know when the create got no answer at all', async () => {
    service.faults.push({ step: 'create', resetAfter: 0 });
    const error = await failure(makeClient(service, { maxRetries: 0 }).uploads.upload(blob()));
    expect(error).toMatchObject({ step: 'create', left: 'unknown' });
  });

  it.each([408, 409, 425, 499])('says that it does not know when the create was answered with %s', async (status) => {
    service.faults.push({ step: 'create', status });
    const error = await failure(makeClient(service, { maxRetries: 0 }).uploads.upload(blob()));
    expect(error).toMatchObject({ step: 'create', left: 'unknown', cause: { status } });
  });

  it('says that nothing is left when no connection was made', async () => {
    const refused = Object.assign(new TypeError('fetch failed'), {
      cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
    });
    const client = makeClient(service, { maxRetries: 0, fetch: () => Promise.reject(refused) });
    expect(await failure(client.uploads.upload(blob()))).toMatchObject({ step: 'create', left: 'nothing' });
  });

  it('shows no key and no signature', async () => {
    service.faults.push({ step: 'put', status: 400 });
    const error = await failure(makeClient(service).uploads.upload(blob()));
    const shown = `${error.message} ${error.stack} ${JSON.stringify(error)} ${JSON.stringify(error.cause)}`;
    expect(shown).not.toMatch(/key-for-tests|signature=/);
  });
});

describe('an abort', () => {
  it('while bytes leave, rejects at once with its own reason and lets go of the source', async () => {
    const abort = new AbortController();
    let canceled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(50_000)),
      cancel: () => {
        canceled = true;
      },
    });
    const reason = new Error('enough');
    const work = makeClient(service).uploads.upload(endless, {
      sizeBytes: 100_000_000,
      mimeType: 'video/mp4',
      signal: abort.signal,
      onProgress: ({ sentBytes }) => sentBytes > 1_000_000 && abort.abort(reason),
    });
    expect(await failure(work)).toBe(reason);
    await expect.poll(() => service.log).toContain('DELETE /v1/uploads/:id');
    await expect.poll(() => service.uploads.size).toBe(0);
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(canceled).toBe(true);
  });

  it('while the source does not give its first byte, rejects at once', async () => {
    const stalled = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
    const abort = new AbortController();
    const work = makeClient(service).uploads.upload(stalled, { sizeBytes: 9, signal: abort.signal });
    abort.abort('stop');
    expect(await failure(work)).toBe('stop');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(service.log).toEqual([]);
  });

  it('beforehand, makes no call', async () => {
    const work = makeClient(service).uploads.upload(blob(), { signal: AbortSignal.abort('before') });
    expect(await failure(work)).toBe('before');
    expect(service.log).toEqual([]);
  });
});

describe('the steps one by one', () => {
  const A_MOVIE = {
    file_name: 'a.mp4',
    mime_type: 'video/mp4',
    file_size: MP4.length,
    upload_type: 'VIDEO',
  } as const;

  it('give the same as the one call', async () => {
    const { uploads } = makeClient(service);
    const created = await uploads.create(A_MOVIE);
    expect(created.headers).toEqual({ 'Content-Type': 'video/mp4', 'x-storage-meta-owner': 'workspace-1' });
    const told: number[] = [];
    const answer = await uploads.put(created, stream(), {
      sizeBytes: MP4.length,
      onProgress: ({ sentBytes }) => told.push(sentBytes),
    });
    expect(answer.headers.get('etag')).toBe(`"${hash(MP4)}"`);
    expect(told.at(-1)).toBe(MP4.length);
    expect((await uploads.complete(created.upload_id)).upload_id).toBe('up_1');
    expect(await uploads.delete(created.upload_id)).toEqual({ deleted: true });
    await expect(uploads.delete(created.upload_id)).rejects.toMatchObject({ code: 'upload_not_found' });
  });

  it("send the key along on the service's own PUT, within its documented limit", async () => {
    const { uploads } = makeClient(service);
    const created = await uploads.create(A_MOVIE);
    await uploads.put({ ...created, direct_upload_url: `/v1/uploads?upload_id=${created.upload_id}` }, blob());
    expect(service.seen.at(-1)).toMatchObject({
      at: 'service',
      bytes: MP4.length,
      headers: { authorization: 'Bearer key-for-tests' },
    });
  });

  it('tell a source that breaks from a connection that breaks', async () => {
    const { uploads } = makeClient(service);
    const created = await uploads.create({ ...A_MOVIE, file_size: 100 });
    const broken = () => new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error('The disk is gone.')) });
    const error = await failure(uploads.put(created, broken, { sizeBytes: 100 }));
    expect(error).toMatchObject({ name: 'UploadError', step: 'put' });
    expect(error.message).toContain('The disk is gone.');
  });
});
