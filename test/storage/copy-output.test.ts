import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeEach, describe, expect, it } from 'vitest';
import { copyOutput, StorageError } from '../../src/adapters/storage/index.js';
import type { OutputClient } from '../../src/downloading/output-source.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { hash, LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie, failure, openPerTest, quickPauses } from '../files/support.js';
import { MemoryStore } from './memory-store.js';

quickPauses();

const MOVIE = createMovie(1_000_000);
const OTHER_MOVIE = createMovie(1_000_000, 7);
const SHA256 = hash(MOVIE);

const service = openPerTest(new LoopbackService());
let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const copy = (options = {}) => copyOutput(createClient(service), 'job_1', store.at('fox.mp4'), options);
const stored = () => store.objects.get('fox.mp4');

describe('the source', () => {
  it('is resumed with range requests while the put continues', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cutAfter: [400_000, 200_000, 1] });
    expect(await copy()).toMatchObject({ sha256: SHA256, existed: false });
    expect(store.puts).toBe(1);
    const ranges = service.downloads.slice(1).map(({ headers }) => [headers.range, headers['if-range']]);
    expect(ranges).toEqual(['bytes=400000-', 'bytes=600000-', 'bytes=600001-'].map((range) => [range, output.etag]));
  });

  it('is copied again if it changes, so that two files are never mixed', async () => {
    const output = service.addOutput('job_1', { body: OTHER_MOVIE, cutAfter: [400_000] });
    output.onGet = () => {
      if (service.downloads.length === 2) Object.assign(output, { body: MOVIE, etag: '"new"' });
    };
    expect(await copy({ retries: 0 })).toMatchObject({ sha256: SHA256 });
    expect(store.puts).toBe(2);
    expect(stored()?.bytes.equals(MOVIE)).toBe(true);
  });

  it('causes a DownloadError if it is always interrupted, and nothing is stored', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [400_000, ...Array(20).fill(0)] });
    expect(await failure(copy())).toMatchObject({ name: 'DownloadError', code: 'interrupted', jobId: 'job_1' });
    expect(store.puts).toBe(1);
    expect(stored()).toBeUndefined();
  });

  it("is downloaded twice if the service doesn't send its size", async () => {
    service.addOutput('job_1', { body: MOVIE, chunked: true });
    expect(await copy()).toMatchObject({ sizeBytes: MOVIE.length, sha256: SHA256 });
    expect(stored()?.options.sizeBytes).toBe(MOVIE.length);
    expect(service.downloads).toHaveLength(2);
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

  it.each([false, true])("isn't copied if it is empty (chunked: %s)", async (chunked) => {
    service.addOutput('job_1', { body: new Uint8Array(), chunked });
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
    ['image/x-unknown', 'application/octet-stream', undefined],
  ])('of %s is stored as %s', async (contentType, storedType, returnedType) => {
    service.addOutput('job_1', { body: MOVIE, contentType });
    expect((await copy()).contentType).toBe(returnedType);
    expect(stored()?.options.contentType).toBe(storedType);
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
    store.failures.push(...Array(9).fill(response));
    expect(await failure(copy())).toMatchObject({ name: 'StorageError', code: `http_${status}`, status });
    expect(store.puts).toBe(puts);
    store.failures.splice(0, 9, async (body, options) => {
      store.objects.set('fox.mp4', { bytes: Buffer.from(await new Response(body).arrayBuffer()), options });
      return new Response(null, { status });
    });
    expect(await copy()).toMatchObject({ existed: false, sha256: SHA256 });
  });

  it('is retried with a new body if it throws', async () => {
    store.failures.push(
      () => Promise.reject(new TypeError('fetch failed')),
      async (body) => {
        await body.getReader().read();
        throw Object.assign(new Error('busy'), { statusCode: 503 });
      },
    );
    expect(await copy()).toMatchObject({ sha256: SHA256 });
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

  it('fails after `retries` retries', async () => {
    store.failures.push(...Array(9).fill(() => Promise.reject(new Error('unavailable'))));
    const error = await failure(copy({ retries: 3 }));
    expect(error).toMatchObject({ code: 'put_failed', status: undefined, store: 'custom' });
    expect(error.message).toContain('unavailable');
    expect(store.puts).toBe(4);
    expect(StorageError.isInstance(error)).toBe(true);
  });

  it('fails for an existing object even without a head method', async () => {
    const { put } = store.at('fox.mp4');
    const copyWithoutHead = (options = {}) => copyOutput(createClient(service), 'job_1', { put }, options);
    await copyWithoutHead();
    expect(await failure(copyWithoutHead())).toMatchObject({ code: 'object_exists' });
    expect(await copyWithoutHead({ overwrite: true })).toMatchObject({ existed: false });
  });
});

describe('callbacks and options', () => {
  beforeEach(() => void service.addOutput('job_1', { body: MOVIE }));

  it("report progress after each chunk, in the call's async context", async () => {
    const tenants = new AsyncLocalStorage<string>();
    const progress: number[] = [];
    await tenants.run('a', () =>
      copy({
        onProgress: ({ receivedBytes, totalBytes }: { receivedBytes: number; totalBytes: number }) => {
          expect([totalBytes, tenants.getStore()]).toEqual([MOVIE.length, 'a']);
          progress.push(receivedBytes);
        },
      }),
    );
    expect(progress.at(-1)).toBe(MOVIE.length);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
  });

  it('include a signal that aborts the copy immediately with its reason', async () => {
    service.addOutput('job_1', { body: MOVIE, stallAfter: 100_000 });
    const abort = new AbortController();
    let signal: AbortSignal | undefined;
    store.failures.push((body, options) => {
      signal = options.signal;
      void new Response(body).arrayBuffer().catch(() => undefined);
      return new Promise(() => {});
    });
    const copyPromise = copy({ signal: abort.signal, onProgress: () => abort.abort('aborted') });
    expect(await failure(copyPromise)).toBe('aborted');
    expect(signal?.aborted).toBe(true);
    expect(stored()).toBeUndefined();
  });

  it('work with a client of the same shape', async () => {
    const client: OutputClient = {
      jobs: {
        get: async (id) => ({ id, status: 'completed' }),
        output: async () => new Response(MOVIE, { headers: { 'content-length': `${MOVIE.length}` } }),
        outputInfo: async () => expect.fail('the response is sufficient'),
      },
    };
    const copied = await copyOutput(client, { id: 'job_1' }, store.at('x'));
    expect(copied).toMatchObject({ sha256: SHA256, contentType: undefined });
    expect(store.objects.get('x')?.options.contentType).toBe('application/octet-stream');
  });

  const put = () => Promise.resolve();
  it.each<[string, { client?: unknown; job?: unknown; destination?: unknown; options?: object }, string]>([
    ['an unknown option', { options: { retrys: 1 } }, 'Did you mean "retries"?'],
    ['an invalid value', { options: { retries: -1 } }, 'retries must be'],
    ['a missing client', { client: 'job_1' }, 'must be a GenClient'],
    ["a create's result", { job: { job: { id: 'job_1' } } }, 'created.job'],
    ['a missing job', { job: null }, 'Pass a job or its ID'],
    ['a missing destination', { destination: null }, 'destination must be an object with the method put, not null'],
    ['a destination without put', { destination: {} }, 'destination must be an object with the method put'],
  ])('%s is rejected, and the message says what is valid', async (_, invalid, message) => {
    const args = { client: createClient(service), job: 'job_1', destination: { put }, options: {}, ...invalid };
    const error = await failure(
      copyOutput(args.client as never, args.job as never, args.destination as never, args.options),
    );
    expect(error.name).toBe('GenError');
    expect(error.message).toContain(message);
  });
});

it("a copy's pauses use the sandbox's clock", async () => {
  const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 0 });
  const client = sandbox.client();
  const { job } = await client.images.create({ prompt: 'a fox' });
  await sandbox.advance(10);
  store.failures.push(() => Promise.reject(new Error('unavailable')));
  const copyPromise = copyOutput(client, job, store.at('fox.png'));
  await sandbox.advance(1);
  expect(store.puts).toBe(1);
  await sandbox.advance(1_000);
  expect(await copyPromise).toMatchObject({ existed: false });
});
