// One copy, request by request: what the store is asked, when it is asked again, and what every outcome means.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { StoredObject } from '../../src/adapters/storage/destination.js';
import { RepeatRequest, UnconfirmedPut } from '../../src/adapters/storage/destination.js';
import { copyOutput } from '../../src/adapters/storage/index.js';
import { DownloadError, StorageError } from '../../src/errors/index.js';
import { rejection } from '../transport/support.js';
import {
  answering,
  apiError,
  EXISTED,
  FILE,
  failing,
  finished,
  INFO,
  OWN,
  type Put,
  STORED,
  start,
  storeError,
  take,
  taken,
  until,
} from './copy-setup.js';

afterEach(() => void vi.restoreAllMocks());

describe('a copy', () => {
  it('looks, puts once with all that is known of the file, and tells what is stored', async () => {
    const { copy, put, head, output, asked } = start();
    expect(await copy()).toEqual(STORED);
    const signal = expect.any(AbortSignal);
    expect(head.mock.calls).toEqual([[{ signal }]]);
    const metadata = { 'gen-job': 'job_1' };
    const told = { contentType: 'video/mp4', sizeBytes: FILE.length, metadata, signal, overwrite: false };
    expect(put.mock.calls).toEqual([[expect.any(ReadableStream), told]]);
    expect([output.mock.calls[0]?.[0], asked()]).toEqual(['job_1', [1, 1]]);
  });

  it('tells the client that the file is stored, where it wants to know', async () => {
    const { client, destination } = start();
    const storing = vi.fn((_call: object, work: () => Promise<unknown>) => work());
    const jobs = { ...client.jobs, storing };
    expect(await copyOutput({ jobs } as never, { id: 'job_1' }, destination)).toEqual(STORED);
    expect(storing.mock.calls.map(([call]) => call)).toEqual([{ name: 'copyOutput', jobId: 'job_1' }]);
  });

  it.each<[unknown, string | undefined]>([
    [undefined, undefined],
    ['stored', undefined],
    [{ ok: true, status: 200, etag: '"2"' }, '"2"'],
    [{ ok: false, etag: '"2"' }, '"2"'],
    [{ status: 500, etag: '"2"' }, '"2"'],
  ])('is stored by a put that resolves with %j', async (answer, etag) => {
    expect(await start({ puts: [answering(answer)] }).copy()).toEqual({ ...STORED, etag });
  });

  it('tells its progress, from the beginning in each put', async () => {
    const told: unknown[] = [];
    const { copy } = start({
      puts: [failing(new RepeatRequest('Again.', { code: 'moved', store: 'mine' }), true), take],
    });
    await copy({ onProgress: (progress) => told.push(progress) });
    const sums = told.map((it) => (it as { receivedBytes: number }).receivedBytes);
    const half = sums.indexOf(FILE.length) + 1;
    expect(told.every((it) => (it as { totalBytes: number }).totalBytes === FILE.length)).toBe(true);
    expect([sums.slice(0, half), sums.at(-1)]).toEqual([sums.slice(half), FILE.length]);
  });

  it('closes the file that it has not read to its end', async () => {
    const cancel = vi.fn();
    const { copy, output } = start({ puts: [failing(storeError('Denied', 403))] });
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => controller.enqueue(FILE.slice(0, 5_000));
    const headers = { 'content-length': `${FILE.length}`, 'content-type': 'video/mp4' };
    output.mockResolvedValue(new Response(new ReadableStream({ pull, cancel }), { headers }));
    await rejection(copy());
    await until(() => cancel.mock.calls.length === 1);
  });
});

describe('an object that is there', () => {
  it.each<[string, StoredObject, object]>([
    ['of the same job and size', OWN, EXISTED],
    [
      'with less said about it',
      { sizeBytes: FILE.length, metadata: OWN.metadata },
      { ...EXISTED, contentType: undefined, etag: undefined },
    ],
  ])('%s is the file: nothing is opened', async (_, object, expected) => {
    const { copy, output, outputInfo, asked } = start({ looks: [object] });
    const { signal } = new AbortController();
    expect(await copy({ signal })).toEqual(expected);
    expect([output.mock.calls.length, asked()]).toEqual([0, [0, 1]]);
    expect(outputInfo.mock.calls).toEqual([['job_1', { signal }]]);
  });

  it.each<[string, object]>([
    ['does not tell the size', { ...INFO, sizeBytes: undefined }],
    ['has deleted the file', apiError(410, 'output_expired')],
  ])('of the same job is the file where the service %s', async (_, info) => {
    const { copy, outputInfo } = start({ looks: [{ ...OWN, sizeBytes: 7 }] });
    if (info instanceof Error) outputInfo.mockRejectedValue(info);
    else outputInfo.mockResolvedValue(info);
    expect(await copy()).toEqual({ ...EXISTED, sizeBytes: 7 });
  });

  it('of the same job is not decided where the service cannot be asked', async () => {
    const { copy, outputInfo, asked } = start({ looks: [OWN] });
    const away = new Error('away');
    outputInfo.mockRejectedValue(away);
    expect(await rejection(copy())).toBe(away);
    expect(asked()).toEqual([0, 1]);
  });

  const OTHERS: [string, StoredObject][] = [
    ['of another job', { ...OWN, metadata: { 'gen-job': 'job_2' } }],
    ['of nobody', { sizeBytes: FILE.length }],
    ['of another size', { ...OWN, sizeBytes: 7 }],
  ];
  it.each(OTHERS)('%s is never replaced unless it is told', async (_, object) => {
    const { copy, asked } = start({ looks: [object] });
    expect(await rejection(copy({ overwrite: false }))).toMatchObject({
      name: 'StorageError',
      message: 'The store "mine" holds another object there. Pass overwrite: true to replace it (job job_1).',
      code: 'object_exists',
      status: 412,
      store: 'mine',
    });
    expect(asked()).toEqual([0, 1]);
    const other = start({ looks: [object] });
    expect(await other.copy({ overwrite: true })).toEqual(STORED);
    expect(other.put.mock.calls[0]?.[1].overwrite).toBe(true);
  });

  it.each([
    undefined,
    null,
    Object.assign(new Error('no'), { status: 404 }),
    Object.assign(new Error('no'), { status: 403 }),
  ])('is not, where a look gives %s', async (look) => {
    expect(await start({ looks: [look] }).copy({ retries: 0 })).toEqual(STORED);
  });

  it('is not known of a store without a look, and its refusal says so', async () => {
    expect(await start({ hasHead: false }).copy()).toEqual(STORED);
    const cause = taken(412);
    const { copy, asked } = start({ hasHead: false, puts: [failing(cause)] });
    const error = await rejection(copy());
    expect(error).toMatchObject({ code: 'object_exists', status: 412, cause: { cause, status: 412 } });
    expect(asked()).toEqual([1, 0]);
  });
});

describe('a look that fails', () => {
  it('is made again, and its error says what was asked', async () => {
    const away = new Error('away');
    const { copy, clock, asked } = start({ looks: [away, away, undefined] });
    expect(await finished(clock, copy({ retries: 2 }))).toEqual(STORED);
    expect(asked()).toEqual([1, 3]);
    const broken = start({ looks: [away] });
    expect(await rejection(finished(broken.clock, broken.copy({ retries: 2 })))).toMatchObject({
      message: 'The store "mine" failed to tell about the object: away',
      code: 'put_failed',
      cause: away,
    });
    expect(broken.asked()).toEqual([0, 3]);
  });

  it('for good is the error of the store at once', async () => {
    const { copy, asked } = start({ looks: [Object.assign(new Error('no'), { status: 400 })] });
    expect(await rejection(copy())).toMatchObject({ code: 'http_400', status: 400 });
    expect(asked()).toEqual([0, 1]);
  });
});

describe('a put that fails', () => {
  it('is made again five times, after pauses that double and are spread', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const cause = new Error('away');
    const { copy, clock, put, asked } = start({ puts: [failing(cause)] });
    const failed = rejection(copy());
    for (const [at, pauseMs] of [250, 500, 1_000, 2_000, 4_000].entries()) {
      await until(() => clock.timers === 1);
      await clock.advance(Math.ceil(pauseMs * 0.75) - 1);
      expect([put.mock.calls.length, clock.timers]).toEqual([at + 1, 1]);
      await clock.advance(1);
      await until(() => put.mock.calls.length === at + 2);
    }
    expect(await failed).toMatchObject({
      name: 'StorageError',
      message: 'The store "mine" failed to take the file: away',
      code: 'put_failed',
      status: undefined,
      cause,
    });
    expect(asked()).toEqual([6, 6]);
    expect(clock.timers).toBe(0);
  });

  it.each<[unknown, number, number]>([
    [storeError('Denied', 403), 1, 1],
    [storeError('SlowDown', 503), 3, 3],
    [Object.assign(new Error('no'), { statusCode: 429 }), 3, 3],
    [
      new StorageError('No.', {
        code: 'x',
        store: 'mine',
        cause: new DownloadError('x', { jobId: 'job_1', code: 'not_media' }),
      }),
      1,
      1,
    ],
  ])('with %o is made %i times', async (error, puts, looks) => {
    const { copy, clock, asked } = start({ puts: [failing(error)] });
    const failed = await rejection(finished(clock, copy({ retries: 2 })));
    if (error instanceof StorageError) expect(failed).toBe(error);
    expect(asked()).toEqual([puts, looks]);
  });

  it('with a request to repeat it is made again at once, four times, and no retry is used up', async () => {
    const again = new RepeatRequest('The store "mine" has moved.', { code: 'moved', status: 307, store: 'mine' });
    const { copy, clock, asked } = start({
      puts: [again, again, again, again].map((error) => failing(error)).concat(take),
    });
    expect(await copy({ retries: 0 })).toEqual(STORED);
    expect([asked(), clock.timers]).toEqual([[5, 5], 0]);
    const forever = start({ puts: [failing(again)] });
    expect(await rejection(forever.copy({ retries: 0 }))).toBe(again);
    expect(forever.asked()).toEqual([5, 5]);
  });

  it('because another was faster is decided by a look at once', async () => {
    const own = start({ puts: [failing(taken(412))], looks: [undefined, OWN] });
    expect(await own.copy({ retries: 0 })).toEqual(EXISTED);
    const other = start({ puts: [failing(taken(409))], looks: [undefined, { ...OWN, sizeBytes: 7 }] });
    expect(await rejection(other.copy({ retries: 0 }))).toMatchObject({ code: 'object_exists' });
    expect([own.asked(), other.asked()]).toEqual([
      [1, 2],
      [1, 2],
    ]);
    // A store that says both that an object is there, and that none is.
    const confused = start({ puts: [failing(taken(412))] });
    expect(await rejection(confused.copy({ retries: 0 }))).toMatchObject({ code: 'http_412', status: 412 });
    expect(confused.asked()).toEqual([5, 5]);
  });

  it('with a conflict although it may replace is made again after a pause', async () => {
    const { copy, clock, asked } = start({ puts: [failing(taken(409)), take] });
    const copying = copy({ overwrite: true });
    await clock.advance(100);
    expect(asked()).toEqual([1, 1]);
    expect(await finished(clock, copying)).toEqual(STORED);
  });

  it.each<[string, unknown, boolean, object]>([
    ['failed after it had all bytes', storeError('Oops', 502), true, STORED],
    ['lost its answer', storeError('unreachable'), true, STORED],
    ['gave no answer in time', storeError('timeout'), true, STORED],
    ['failed before it had all bytes', storeError('Oops', 502), false, EXISTED],
    ['says that it has failed', new Error('away'), true, EXISTED],
  ])('although the object is there, because the store %s, is known again', async (_, error, isWhole, expected) => {
    const { copy, clock, asked } = start({ puts: [failing(error, isWhole)], looks: [undefined, OWN] });
    expect(await finished(clock, copy())).toEqual(expected);
    expect(asked()).toEqual([1, 2]);
  });

  it.each<[string, StoredObject]>([
    ['another size', { ...OWN, sizeBytes: 7 }],
    ['another job', { ...OWN, metadata: { 'gen-job': 'job_2' } }],
  ])('after it had all bytes is not taken for stored by an object of %s', async (_, object) => {
    const { copy, clock } = start({ puts: [failing(storeError('Oops', 502), true)], looks: [undefined, object] });
    expect(await rejection(finished(clock, copy()))).toMatchObject({ code: 'object_exists' });
  });
});

describe('a put whose outcome is in doubt', () => {
  const unread: Put = async () => undefined;
  const refusing = (status: number) => answering({ ok: false, status, etag: '"9"' });
  const unconfirmed = new UnconfirmedPut('The store "mine" proves nothing.', { code: 'not_confirmed', store: 'mine' });

  it.each<[string, Put, object]>([
    [
      'says that it has the file, and has not read all of it',
      unread,
      {
        code: 'body_not_read',
        status: undefined,
        message: 'The store "mine" says that it has the file, and has not read all of it (job job_1).',
      },
    ],
    [
      'answers with a refusal',
      refusing(403),
      { code: 'http_403', status: 403, message: 'The store "mine" answers the put with HTTP status 403 (job job_1).' },
    ],
    [
      'proves nothing',
      failing(unconfirmed, true),
      { code: 'not_confirmed', message: 'The store "mine" proves nothing.' },
    ],
  ])('because the store %s is an error where nothing is there', async (_, put, expected) => {
    const { copy, put: sent, head } = start({ puts: [put] });
    expect(await rejection(copy({ retries: 0 }))).toMatchObject({ name: 'StorageError', store: 'mine', ...expected });
    expect(sent).toHaveBeenCalledOnce();
    expect(head).toHaveBeenCalledTimes(2);
  });

  it.each<[string, Put, object]>([
    ['has not read all of it', unread, EXISTED],
    ['answers with a refusal', refusing(500), STORED],
    ['proves nothing after all bytes', failing(unconfirmed, true), STORED],
    ['proves nothing before the last byte', failing(unconfirmed), EXISTED],
  ])('because the store %s is a success where the object is there', async (_, put, expected) => {
    const { copy, asked } = start({ puts: [put], looks: [undefined, OWN] });
    expect(await copy({ retries: 0 })).toEqual(expected);
    expect(asked()).toEqual([1, 2]);
  });
});

describe('a call that cannot be is refused before anything is asked', () => {
  const CALL = 'copyOutput(client, job, destination)';
  it.each<[unknown, string]>([
    [null, 'copyOutput: options must be an object such as { onProgress }, not null.'],
    [{ retrys: 1 }, 'copyOutput has no option "retrys". Did you mean "retries"?'],
    [{ retries: -1 }, 'retries must be a whole number, 0 or more, not -1.'],
    [{ retries: '1' }, 'retries must be a whole number, 0 or more, not "1".'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a number of milliseconds above 0, not 0.'],
    [{ overwrite: 1 }, 'overwrite must be true or false, not 1.'],
    [{ onProgress: {} }, 'onProgress must be a function, not an object.'],
    [{ signal: {} }, 'signal must be an AbortSignal, not an object.'],
  ])('with the options %j: %s', async (options, message) => {
    const { copy, asked } = start();
    expect(await rejection(copy(options as never))).toMatchObject({ name: 'GenError', message });
    expect(asked()).toEqual([0, 0]);
  });

  it.each<[unknown[], string]>([
    [['job_1', { put: take }], `${CALL}: the first argument must be a GenClient, not a string.`],
    [[undefined, 'job_1', { put: take }], `${CALL}: the first argument must be a GenClient, not undefined.`],
    [[start().client, undefined, { put: take }], `${CALL}: job is undefined. Pass a job or its id.`],
    [[start().client, 'job_1', {}], 'destination must be an object with the method put, not an object.'],
    [[start().client, 'job_1', { put: 'x' }], 'destination must be an object with the method put, not an object.'],
    [[start().client, 'job_1', null], 'destination must be an object with the method put, not null.'],
  ])('with %o: %s', async (given, message) => {
    expect(await rejection(copyOutput(...(given as Parameters<typeof copyOutput>)))).toMatchObject({
      name: 'GenError',
      message,
    });
  });

  it('and a store without a name is called custom', async () => {
    const { client } = start();
    const error = await rejection(copyOutput(client as never, 'job_1', { put: failing(taken(412)) }));
    expect(error).toMatchObject({
      store: 'custom',
      message: 'The store "custom" holds another object there. Pass overwrite: true to replace it (job job_1).',
    });
  });
});
