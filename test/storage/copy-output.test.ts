import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copyOutput, StorageError } from '../../src/adapters/storage/index.js';
import type { OutputClient } from '../../src/downloading/output-source.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { LoopbackService } from '../files/loopback-service.js';
import { failure, makeClient, quickPauses } from '../files/support.js';
import { MemoryStore } from './memory-store.js';

quickPauses();

const MOVIE = new Uint8Array(1_000_000).map((_, at) => (at * 13) % 249);
const OTHER = new Uint8Array(1_000_000).map((_, at) => (at * 7) % 241);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let service: LoopbackService;
let store: MemoryStore;
beforeEach(async () => {
  service = await LoopbackService.start();
  store = new MemoryStore();
});
afterEach(() => service.close());

const copy = (options = {}) => copyOutput(makeClient(service), 'job_1', store.at('fox.mp4'), options);
const stored = () => store.objects.get('fox.mp4');
const gets = () => service.seen.filter(({ method, path }) => method === 'GET' && /output/.test(path));

describe('the source', () => {
  it('is resumed with range requests while the put continues', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cuts: [400_000, 200_000, 1] });
    expect(await copy()).toMatchObject({ sha256: sha256(MOVIE), existed: false });
    expect(store.puts).toBe(1);
    expect(
      gets()
        .slice(1)
        .map(({ headers }) => headers.range),
    ).toEqual(['bytes=400000-', 'bytes=600000-', 'bytes=600001-']);
    for (const { headers } of gets().slice(1)) expect(headers['if-range']).toBe(output.etag);
  });

  it('is copied again if it changes, so that two files are never mixed', async () => {
    const output = service.addOutput('job_1', { body: OTHER, cuts: [400_000] });
    output.onGet = () => {
      if (gets().length === 2) Object.assign(output, { body: MOVIE, etag: '"new"' });
    };
    expect(await copy({ retries: 0 })).toMatchObject({ sha256: sha256(MOVIE) });
    expect(store.puts).toBe(2);
    expect(stored()?.bytes.equals(MOVIE)).toBe(true);
  });

  it('rejects with a DownloadError if it stalls, and nothing is stored', async () => {
    service.addOutput('job_1', { body: MOVIE, cuts: [400_000, ...Array(20).fill(0)] });
    expect(await failure(copy())).toMatchObject({ name: 'DownloadError', code: 'interrupted', jobId: 'job_1' });
    expect(store.puts).toBe(1);
    expect(stored()).toBeUndefined();
  });

  it("is read twice to count its bytes if the service doesn't send the size", async () => {
    const output = service.addOutput('job_1', { body: MOVIE, chunked: true });
    expect(await copy()).toMatchObject({ sizeBytes: MOVIE.length, sha256: sha256(MOVIE) });
    expect(stored()?.options.sizeBytes).toBe(MOVIE.length);
    expect(gets()).toHaveLength(2);
    expect(output.cuts).toEqual([]);
  });

  it("is rejected before the store is called if it isn't media", async () => {
    service.addOutput('job_1', { body: Buffer.from('{"success":false}'), contentType: 'application/json' });
    expect(await failure(copy())).toMatchObject({ name: 'DownloadError', code: 'not_media' });
    expect(store.puts).toBe(0);
  });

  it('is rejected if its job is still running', async () => {
    service.jobs.set('job_1', { id: 'job_1', status: 'processing' });
    expect(await failure(copy())).toMatchObject({ code: 'job_not_finished' });
  });

  it.each([
    ['with its length', {}],
    ['without a length', { chunked: true }],
  ])("without bytes, reported as %s, isn't a success", async (_, how) => {
    service.addOutput('job_1', { body: new Uint8Array(), ...how });
    expect(await failure(copy())).toMatchObject({ name: 'DownloadError', code: 'not_media', jobId: 'job_1' });
    expect(stored()).toBeUndefined();
  });
});

describe('a put', () => {
  beforeEach(() => void service.addOutput('job_1', { body: MOVIE }));

  it('receives the size, type, metadata, and overwrite option', async () => {
    await copy();
    expect(stored()?.options).toEqual({
      contentType: 'video/mp4',
      sizeBytes: MOVIE.length,
      metadata: { 'gen-job': 'job_1' },
      overwrite: false,
      signal: expect.any(AbortSignal),
    });
  });

  it.each([
    ['video/mp4; codecs="<script>"', 'video/mp4', 'video/mp4'],
    ['image/svg+xml', 'application/octet-stream', undefined],
    ['image/x-unheard-of', 'application/octet-stream', undefined],
  ])('of %s is stored as %s', async (contentType, kept, reported) => {
    service.addOutput('job_1', { body: MOVIE, contentType });
    expect((await copy()).contentType).toBe(reported);
    expect(stored()?.options.contentType).toBe(kept);
  });

  it('is an error if it resolves without reading the entire body', async () => {
    store.failures.push(async (body) => {
      await body.getReader().read();
    });
    expect(await failure(copy())).toMatchObject({ name: 'StorageError', code: 'body_not_read', store: 'custom' });
    expect(store.puts).toBe(1);
  });

  it.each([
    [500, 6],
    [403, 1],
    [302, 1],
  ])('is an error if it resolves with status %i, unless the object exists', async (status, puts) => {
    const response = async (body: ReadableStream<Uint8Array>) => {
      await new Response(body).arrayBuffer();
      return new Response(null, { status });
    };
    for (let at = 0; at < 9; at++) store.failures.push(response);
    expect(await failure(copy())).toMatchObject({ name: 'StorageError', code: `http_${status}`, status });
    expect(store.puts).toBe(puts);
    store.failures.splice(0, 9, async (body, options) => {
      store.objects.set('fox.mp4', { bytes: Buffer.from(await new Response(body).arrayBuffer()), options });
      return new Response(null, { status });
    });
    expect(await copy()).toMatchObject({ existed: false, sha256: sha256(MOVIE) });
  });

  it('is sufficient if HEAD is denied', async () => {
    const { put } = store.at('fox.mp4');
    const head = () => Promise.reject(Object.assign(new Error('denied'), { status: 403 }));
    expect(await copyOutput(makeClient(service), 'job_1', { head, put })).toMatchObject({ existed: false });
  });

  it('is retried with a new body if it throws', async () => {
    store.failures.push(
      () => Promise.reject(new TypeError('fetch failed')),
      async (body) => {
        await body.getReader().read();
        throw Object.assign(new Error('busy'), { statusCode: 503 });
      },
    );
    expect(await copy()).toMatchObject({ sha256: sha256(MOVIE) });
    expect(store.puts).toBe(3);
  });

  it.each([
    ['status', { status: 403 }],
    ['statusCode', { statusCode: 404 }],
    ['$metadata', { $metadata: { httpStatusCode: 400 } }],
    ['response', { response: { status: 401 } }],
  ])("isn't retried after a permanent error in %s", async (_, details) => {
    const cause = Object.assign(new Error('No.'), details, { code: 'Denied' });
    store.failures.push(() => Promise.reject(cause));
    expect(await failure(copy())).toMatchObject({ name: 'StorageError', code: 'Denied', cause });
    expect(store.puts).toBe(1);
  });

  it('fails after `retries` attempts', async () => {
    for (let at = 0; at < 9; at++) store.failures.push(() => Promise.reject(new Error('away')));
    const error = await failure(copy({ retries: 3 }));
    expect(error).toMatchObject({ code: 'put_failed', status: undefined, store: 'custom' });
    expect(error.message).toContain('away');
    expect(store.puts).toBe(4);
    expect(StorageError.isInstance(error)).toBe(true);
  });

  it('reports an existing object even without a head method', async () => {
    const { put } = store.at('fox.mp4');
    await copyOutput(makeClient(service), 'job_1', { put });
    expect(await failure(copyOutput(makeClient(service), 'job_1', { put }))).toMatchObject({ code: 'object_exists' });
    expect(await copyOutput(makeClient(service), 'job_1', { put }, { overwrite: true })).toMatchObject({
      existed: false,
    });
  });
});

describe('callbacks and options', () => {
  beforeEach(() => void service.addOutput('job_1', { body: MOVIE }));

  it("report progress after each chunk, in the call's async context", async () => {
    const tenants = new AsyncLocalStorage<string>();
    const reported: number[] = [];
    await tenants.run('a', () =>
      copy({
        onProgress: ({ receivedBytes, totalBytes }: { receivedBytes: number; totalBytes: number }) => {
          expect([totalBytes, tenants.getStore()]).toEqual([MOVIE.length, 'a']);
          reported.push(receivedBytes);
        },
      }),
    );
    expect(reported.at(-1)).toBe(MOVIE.length);
    expect(reported).toEqual([...reported].sort((a, b) => a - b));
  });

  it('include a signal whose abort ends the copy immediately with its reason', async () => {
    service.addOutput('job_1', { body: MOVIE, stallAfter: 100_000 });
    const abort = new AbortController();
    let signal: AbortSignal | undefined;
    store.failures.push((body, options) => {
      signal = options.signal;
      void new Response(body).arrayBuffer().catch(() => undefined);
      return new Promise(() => {});
    });
    const copying = copy({ signal: abort.signal, onProgress: () => abort.abort('enough') });
    expect(await failure(copying)).toBe('enough');
    expect(signal?.aborted).toBe(true);
    expect(stored()).toBeUndefined();
  });

  it('accept a client with the same shape', async () => {
    const client: OutputClient = {
      jobs: {
        get: async (id) => ({ id, status: 'completed' }),
        output: async () => new Response(MOVIE, { headers: { 'content-length': `${MOVIE.length}` } }),
        outputInfo: async () => expect.fail('the response is sufficient'),
      },
    };
    expect(await copyOutput(client, { id: 'job_1' }, store.at('x'))).toMatchObject({
      sha256: sha256(MOVIE),
      contentType: undefined,
    });
    expect(store.objects.get('x')?.options.contentType).toBe('application/octet-stream');
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['an unknown option', () => copy({ retrys: 1 }), 'Did you mean "retries"?'],
    ['an invalid value', () => copy({ retries: -1 }), 'retries must be'],
    [
      'a missing client',
      () => copyOutput('job_1' as never, store.at('x') as never, {} as never),
      'must be a GenClient',
    ],
    [
      'a created job',
      () => copyOutput(makeClient(service), { job: { id: 'job_1' } } as never, store.at('x')),
      'created.job',
    ],
    ['a missing job', () => copyOutput(makeClient(service), undefined as never, store.at('x')), 'Pass a job or its ID'],
    [
      'a missing destination',
      () => copyOutput(makeClient(service), 'job_1', undefined as never),
      'destination must be an object with the method put, not undefined',
    ],
    [
      'a destination without put',
      () => copyOutput(makeClient(service), 'job_1', {} as never),
      'destination must be an object with the method put',
    ],
  ])('%s is rejected with the fix', async (_, call, message) => {
    const error = await failure(call());
    expect(error.name).toBe('GenError');
    expect(error.message).toContain(message);
  });
});

it("a copy's pauses use the sandbox's clock", async () => {
  const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 0 });
  const client = sandbox.client();
  const { job } = await client.images.create({ prompt: 'a fox' });
  await sandbox.advance(10);
  store.failures.push(() => Promise.reject(new Error('away')));
  const copying = copyOutput(client, job, store.at('fox.png'));
  let isDone = false;
  void copying.then(() => {
    isDone = true;
  });
  await sandbox.advance(1);
  expect([store.puts, isDone]).toEqual([1, false]);
  await sandbox.advance(1_000);
  expect(await copying).toMatchObject({ existed: false });
});
