// One copy, request by request: what the store is asked, when it is asked again, and what every outcome means.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { StoredObject } from '../../src/adapters/storage/destination.js';
import { UnconfirmedPut } from '../../src/adapters/storage/destination.js';
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
  taken,
  until,
} from './copy-setup.js';

afterEach(() => void vi.restoreAllMocks());

describe('a copy', () => {
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
  it.each<[string, object]>([
    ['does not tell the size', { ...INFO, sizeBytes: undefined }],
    ['has deleted the file', apiError(410, 'output_expired')],
  ])('of the same job is the file where the service %s', async (_, info) => {
    const { copy, outputInfo } = start({ looks: [{ ...OWN, sizeBytes: 7 }] });
    if (info instanceof Error) outputInfo.mockRejectedValue(info);
    else outputInfo.mockResolvedValue(info);
    expect(await copy()).toEqual({ ...EXISTED, sizeBytes: 7 });
  });

  const _OTHERS: [string, StoredObject][] = [
    ['of another job', { ...OWN, metadata: { 'gen-job': 'job_2' } }],
    ['of nobody', { sizeBytes: FILE.length }],
    ['of another size', { ...OWN, sizeBytes: 7 }],
  ];
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
});

describe('a put that fails', () => {
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
});

describe('a put whose outcome is in doubt', () => {
  const unread: Put = async () => undefined;
  const refusing = (status: number) => answering({ ok: false, status, etag: '"9"' });
  const unconfirmed = new UnconfirmedPut('The store "mine" proves nothing.', { code: 'not_confirmed', store: 'mine' });

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
