// One upload at the service's own steps: what each is asked, and what the error of one that fails says.
import { describe, expect, it, vi } from 'vitest';
import { APIError, ConnectionError, PreflightError } from '../../src/errors/index.js';
import { describeFile } from '../../src/uploading/file.js';
import { putSource, type UploadSteps, uploadFile } from '../../src/uploading/upload.js';
import type { UploadOptions } from '../../src/uploading/upload-options.js';
import { rejection } from '../transport/support.js';

const BYTES = new Uint8Array(1_000).fill(7);
const PARAMS = { file_name: 'upload.mp4', mime_type: 'video/mp4', file_size: 1_000, upload_type: 'VIDEO' } as const;
const STREAMED = { sizeBytes: 1_000, mimeType: 'video/mp4' };
const blob = () => new Blob([BYTES], { type: 'video/mp4' });

const refusal = (status: number, message = 'The service refused it.') =>
  new APIError(message, { status, code: 'http_400', recovery: 'change_request', method: 'PUT', url: 'https://a.test' });
const EXPIRED = refusal(403, 'Request has expired');

/** The steps of a service that takes every upload, and the bytes that came. */
function start(url = 'https://storage.test/put?signature=1') {
  let made = 0;
  const received: Uint8Array[] = [];
  const unused = () => expect.fail('an upload by itself is not remembered');
  const steps = {
    baseUrl: () => 'https://service.test/prefix',
    memory: unused,
    remembered: unused,
    create: vi.fn<UploadSteps['create']>(async (params) => ({
      ...params,
      upload_id: `upl_${++made}`,
      direct_upload_url: url,
      headers: { 'Content-Type': 'video/mp4', 'X-Meta': 'fox' },
    })),
    put: vi.fn<UploadSteps['put']>(async ({ body }) => {
      received.push(await new Response(await body(() => {})).bytes());
      return new Response('stored');
    }),
    complete: vi.fn<UploadSteps['complete']>(async (upload_id) => Object.assign({ upload_id }, { status: 'ready' })),
    delete: vi.fn<UploadSteps['delete']>(async () => ({})),
  };
  const upload = async (source: unknown, options: UploadOptions = {}) =>
    uploadFile(steps, await describeFile(source, options), options);
  return { steps, received, upload };
}

/** A stream of the bytes, and who hears that it is let go of. */
function watched(bytes = BYTES) {
  const cancel = vi.fn();
  let given = 0;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (given >= bytes.length) return controller.close();
    controller.enqueue(bytes.slice(given, given + 500));
    given += 500;
  };
  return { stream: new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 }), cancel };
}

describe('an upload', () => {
  it('takes three calls, each with the options of the call', async () => {
    const { steps, received, upload } = start();
    const { signal } = new AbortController();
    const call = { signal, timeoutMs: 700, maxRetries: 4, headers: { 'x-tenant': 'ann' } };
    expect(await upload(blob(), { ...call, idempotencyKey: 'order-1' })).toEqual({
      ...PARAMS,
      upload_id: 'upl_1',
      status: 'ready',
    });
    expect(steps.create.mock.calls).toEqual([[PARAMS, { ...call, idempotencyKey: 'order-1' }]]);
    expect(steps.put.mock.calls).toEqual([
      [
        {
          url: 'https://storage.test/put?signature=1',
          headers: { 'content-type': 'video/mp4', 'x-meta': 'fox', 'content-length': '1000' },
          body: expect.any(Function),
          repeatable: true,
          lane: undefined,
        },
        call,
      ],
    ]);
    expect(steps.complete.mock.calls).toEqual([['upl_1', call]]);
    expect([steps.delete.mock.calls, received]).toEqual([[], [BYTES]]);
  });

  it.each([
    ['https://service.test/v1/uploads/1', 'https://service.test/v1/uploads/1', 'uploads.put'],
    ['v1/uploads/1', 'https://service.test/prefix/v1/uploads/1', 'uploads.put'],
    ['https://service.test.evil/v1', 'https://service.test.evil/v1', undefined],
    ['http://service.test/v1', 'http://service.test/v1', undefined],
  ])('to %s counts against the limit of the service only on its own origin', async (given, url, lane) => {
    const { steps, upload } = start(given);
    await upload(blob());
    expect(steps.put.mock.calls[0]?.[0]).toMatchObject({ url, lane });
  });

  it.each([
    ['by itself', (steps: UploadSteps, onProgress: UploadOptions['onProgress']) => sendAll(steps, onProgress)],
    [
      'of its bytes alone',
      (steps: UploadSteps, onProgress: UploadOptions['onProgress']) =>
        putSource(steps, {
          target: { direct_upload_url: '/put', headers: {}, file_size: 1_000 },
          source: watched().stream,
          options: { onProgress },
        }),
    ],
  ])('%s tells its last byte once the storage has it, also where nothing asked past it', async (_, send) => {
    const { steps } = start();
    const told: number[] = [];
    steps.put.mockImplementation(async ({ body }) => {
      const reader = ((await body(() => {})) as ReadableStream).getReader();
      for (let read = 0; read < 2; read++) await reader.read();
      expect(told).toEqual([0, 500]);
      return new Response();
    });
    await send(steps, ({ sentBytes }) => told.push(sentBytes));
    expect(told).toEqual([0, 500, 1_000]);
  });

  const sendAll = async (steps: UploadSteps, onProgress: UploadOptions['onProgress']) =>
    uploadFile(steps, await describeFile(watched().stream, { ...STREAMED, onProgress }), {});

  it.each(['create', 'put'] as const)('lets go of a source that can be read once when its %s fails', async (step) => {
    const { steps, upload } = start();
    const { stream, cancel } = watched();
    steps[step].mockImplementation(async (given) => {
      // Storage may refuse before it has read everything.
      if ('body' in given) {
        const reader = ((await given.body(() => {})) as ReadableStream).getReader();
        await reader.read();
        reader.releaseLock();
      }
      throw refusal(400);
    });
    expect(await rejection(upload(stream, STREAMED))).toMatchObject({ step });
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });
});

describe('a new URL for one that has expired', () => {
  it.each<[UploadOptions, (string | undefined)[], string[]]>([
    [{}, [undefined, undefined], ['upl_1']],
    [{ idempotencyKey: 'order-1' }, ['order-1', 'order-1:1'], ['upl_1']],
    [{ cleanup: true }, [undefined, undefined], ['upl_1']],
    [{ cleanup: false }, [undefined, undefined], []],
  ])('is asked for with %j', async (options, keys, deleted) => {
    const { steps, received, upload } = start();
    steps.put.mockRejectedValueOnce(EXPIRED);
    expect(await upload(blob(), options)).toMatchObject({ upload_id: 'upl_2' });
    expect(steps.create.mock.calls.map(([, { idempotencyKey }]) => idempotencyKey)).toEqual(keys);
    expect(steps.delete.mock.calls.map(([id]) => id)).toEqual(deleted);
    expect([steps.complete.mock.calls.map(([id]) => id), received]).toEqual([['upl_2'], [BYTES]]);
  });

  it('is not asked for after an abort', async () => {
    const { steps, upload } = start();
    const controller = new AbortController();
    steps.put.mockImplementation(async () => {
      controller.abort('enough');
      throw EXPIRED;
    });
    expect(await rejection(upload(blob(), { signal: controller.signal }))).toBe('enough');
    expect([steps.create.mock.calls.length, steps.delete.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('the error of an upload', () => {
  const NOTHING = 'Nothing is left on the service.';
  const ONCE =
    'It was not tried again, because a ReadableStream can be read only once: pass a Blob, a function that returns a fresh stream, or fromPath().';
  const LEFT = 'The unfinished upload is left on the service: uploads.delete(upload_id) deletes it.';
  const UNKNOWN = 'An unfinished upload may be left on the service.';
  type Fail = (steps: ReturnType<typeof start>['steps']) => unknown;
  const stream = () => watched().stream;
  it.each<[string, Fail, unknown, UploadOptions, object]>([
    [
      `The upload failed at step "create": The service refused it. ${NOTHING}`,
      (steps) => steps.create.mockRejectedValue(refusal(400)),
      blob(),
      {},
      { step: 'create', uploadId: undefined, left: 'nothing', cause: refusal(400) },
    ],
    [
      `The upload failed at step "create": The service refused it. ${NOTHING}`,
      (steps) => steps.create.mockRejectedValue(refusal(400)),
      stream(),
      STREAMED,
      { step: 'create', left: 'nothing' },
    ],
    [
      `The upload failed at step "create": socket hang up. ${UNKNOWN}`,
      (steps) => steps.create.mockRejectedValue(new Error('socket hang up')),
      blob(),
      {},
      { step: 'create', uploadId: undefined, left: 'unknown' },
    ],
    [
      `The upload failed at step "put" (upl_1): no. Not now. ${NOTHING}`,
      (steps) => steps.put.mockRejectedValue('no. Not now'),
      blob(),
      {},
      { step: 'put', uploadId: 'upl_1', left: 'nothing', cause: 'no. Not now' },
    ],
    [
      `The upload failed at step "put" (upl_1): Why? ${ONCE} ${NOTHING}`,
      (steps) => steps.put.mockRejectedValue(new Error('Why?')),
      stream(),
      STREAMED,
      { step: 'put', left: 'nothing' },
    ],
    [
      `The upload failed at step "put" (upl_2): Request has expired. ${NOTHING}`,
      (steps) => steps.put.mockRejectedValue(EXPIRED),
      blob(),
      {},
      { step: 'put', uploadId: 'upl_2', left: 'nothing' },
    ],
    [
      `The upload failed at step "put" (upl_1): The content ended after 1000 of 1001 bytes. ${NOTHING}`,
      (steps) =>
        steps.put.mockImplementation(async ({ body }) => {
          await new Response(await body(() => {})).bytes().catch(() => undefined);
          throw new Error('the socket was closed');
        }),
      stream(),
      { ...STREAMED, sizeBytes: 1_001 },
      { step: 'put', left: 'nothing', cause: new Error('the socket was closed') },
    ],
    [
      `The upload failed at step "complete" (upl_1): Stop! ${NOTHING}`,
      (steps) => steps.complete.mockRejectedValue(new Error('Stop!')),
      stream(),
      STREAMED,
      { step: 'complete', uploadId: 'upl_1', left: 'nothing' },
    ],
    [
      `The upload failed at step "complete" (upl_1): The service refused it. ${LEFT}`,
      (steps) => steps.complete.mockRejectedValue(refusal(422)),
      blob(),
      { cleanup: false },
      { left: 'upload' },
    ],
    [
      `The upload failed at step "complete" (upl_1): The service refused it. ${LEFT}`,
      (steps) => [steps.complete.mockRejectedValue(refusal(422)), steps.delete.mockRejectedValue(refusal(400))],
      blob(),
      {},
      { left: 'upload' },
    ],
    [
      `The upload failed at step "complete" (upl_1): The service refused it. ${UNKNOWN}`,
      (steps) => [steps.complete.mockRejectedValue(refusal(422)), steps.delete.mockRejectedValue(refusal(500))],
      blob(),
      {},
      { left: 'unknown' },
    ],
  ])('says: %s', async (message, fail, source, options, expected) => {
    const { steps, upload } = start();
    fail(steps);
    const error = await rejection(upload(source, options));
    expect(error).toMatchObject({ name: 'UploadError', message, ...expected });
    const calls = steps.delete.mock.calls;
    expect(calls.every(([, given]) => given.maxRetries === 1)).toBe(true);
  });

  it('is that of the check itself where a step refuses before its call, and nothing stays', async () => {
    const { steps, upload } = start();
    const refused = new PreflightError('file_name: is empty.', { code: 'http_400', param: 'file_name' });
    steps.create.mockRejectedValue(refused);
    expect(await rejection(upload(blob()))).toBe(refused);
    expect(steps.delete).not.toHaveBeenCalled();
  });

  it('is the reason of the abort, before a call, and after one whose upload is then deleted', async () => {
    const { steps, upload } = start();
    expect(await rejection(upload(blob(), { signal: AbortSignal.abort('before') }))).toBe('before');
    expect(steps.create).not.toHaveBeenCalled();
    const controller = new AbortController();
    steps.delete.mockImplementation(() => new Promise(() => {}));
    steps.complete.mockImplementation(async () => {
      controller.abort('after');
      throw new ConnectionError('broken');
    });
    const headers = { 'x-tenant': 'ann' };
    const call = { signal: controller.signal, timeoutMs: 700, maxRetries: 3, headers };
    expect(await rejection(upload(blob(), call))).toBe('after');
    expect(steps.delete.mock.calls).toEqual([['upl_1', { timeoutMs: 700, headers, maxRetries: 1 }]]);
  });
});

describe('the bytes alone', () => {
  const target = { direct_upload_url: '/v1/uploads/1', headers: {}, file_size: 1_000 };

  it('take the size from the answer to the first step, and the options of the call', async () => {
    const { steps, received } = start();
    const { signal } = new AbortController();
    const options = { signal, timeoutMs: 700, maxRetries: 4, headers: { 'x-tenant': 'ann' } };
    const response = await putSource(steps, { target, source: watched().stream, options });
    expect([await response.text(), received]).toEqual(['stored', [BYTES]]);
    const request = { url: 'https://service.test/v1/uploads/1', repeatable: false, lane: 'uploads.put' };
    expect(steps.put.mock.calls).toEqual([
      [{ ...request, headers: { 'content-length': '1000' }, body: expect.any(Function) }, options],
    ]);
    await putSource(steps, { target, source: watched(BYTES.subarray(500)).stream, options: { sizeBytes: 500 } });
    expect(steps.put.mock.calls[1]?.[0].headers).toEqual({ 'content-length': '500' });
  });

  it('that the storage refuses are its own error, and the source is let go of', async () => {
    const { steps } = start();
    const { stream, cancel } = watched();
    const refused = refusal(403);
    steps.put.mockRejectedValue(refused);
    expect(await rejection(putSource(steps, { target, source: stream, options: {} }))).toBe(refused);
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });

  it('that the source does not give are an UploadError with what it said', async () => {
    const { steps } = start();
    const cause = new Error('the disk is gone');
    const source = () => new ReadableStream<Uint8Array>({ pull: () => Promise.reject(cause) });
    expect(await rejection(putSource(steps, { target, source, options: {} }))).toMatchObject({
      name: 'UploadError',
      message: 'The upload failed at step "put": the disk is gone.',
      step: 'put',
      uploadId: undefined,
      left: 'upload',
      cause,
    });
  });
});
