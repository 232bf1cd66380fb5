// The file of a job through a client, or through a fake of one: which calls are made, and what becomes of a refusal.
import { describe, expect, it } from 'vitest';
import { checkClient } from '../../src/client/run-calls.js';
import { jobIdOf } from '../../src/downloading/output.js';
import { explained, outputReader, requireOutputClient, storing } from '../../src/downloading/output-source.js';
import { APIError, type DownloadError } from '../../src/errors/index.js';
import { rejection } from '../transport/support.js';

const clock = { now: () => Date.parse('2026-01-02T00:00:00.000Z'), after: () => () => {} };
const source = { jobId: 'job_1', clock };
const refused = new APIError('no', {
  ...{ status: 404, code: 'job_not_found', recovery: 'fix_request', method: 'GET', url: '/x', attempts: 1 },
} as never);

/** A fake client, and the calls that it was asked for. */
function fake(jobs: object = {}) {
  const asked: unknown[] = [];
  const noting =
    <T>(name: string, answer: () => T) =>
    async (...words: unknown[]) => {
      asked.push([name, ...words]);
      return answer();
    };
  const client = {
    jobs: {
      get: noting('get', () => ({ id: 'job_1', status: 'processing' })),
      output: noting('output', () => new Response('01234', { headers: { 'content-type': 'video/mp4', etag: '"a"' } })),
      outputInfo: noting('outputInfo', () => ({ sizeBytes: 5 })),
      ...jobs,
    },
  } as never;
  return { client, asked };
}

describe('a file that is read through a client', () => {
  it('has its size from outputInfo where the answer does not tell it', async () => {
    const { client, asked } = fake();
    const version = await outputReader(client, source).open();
    expect(version).toEqual({ sizeBytes: 5, contentType: 'video/mp4', etag: '"a"' });
    const signal = expect.any(AbortSignal);
    expect(asked).toEqual([
      ['output', 'job_1', { signal }],
      ['outputInfo', 'job_1', { signal }],
    ]);
  });

  it('has none where outputInfo fails, which is no failure of the file', async () => {
    const { client } = fake({ outputInfo: () => Promise.reject(refused) });
    expect(await outputReader(client, source).open()).toMatchObject({ sizeBytes: undefined });
  });
});

describe('a refusal of the file', () => {
  const reading = (client: never, signal?: AbortSignal) =>
    rejection(explained(client, { ...source, signal }, () => Promise.reject(refused)));

  it('is told by the job, which is read with the signal of the call', async () => {
    const { client, asked } = fake();
    const { signal } = new AbortController();
    expect(await reading(client, signal)).toMatchObject({
      code: 'job_not_finished',
      message: 'Job job_1 has no file: its status is processing. Wait for it with waitForJob first.',
      cause: refused,
    } satisfies Partial<DownloadError> | object);
    expect(asked).toEqual([['get', 'job_1', { signal }]]);
  });

  it('stays as it is where the job cannot be read either', async () => {
    expect(await reading(fake({ get: () => Promise.reject(new Error('away')) }).client)).toBe(refused);
  });

  it('is the reason of the abort where the call was aborted, and the job is not read', async () => {
    const { client, asked } = fake();
    expect(await reading(client, AbortSignal.abort('enough'))).toBe('enough');
    expect(asked).toEqual([]);
  });

  it('is none where the work succeeds', async () => {
    expect(await explained(fake().client, source, async () => 'saved')).toBe('saved');
  });
});

it('storing a file is told to a client that wants to know, and is done all the same by a fake', async () => {
  const call = { name: 'saveOutput', jobId: 'job_1' };
  const work = async () => 'saved';
  const told: unknown[] = [];
  const { client } = fake({
    storing: async (asked: unknown, save: () => Promise<string>) => {
      told.push(asked);
      return `${await save()} and told`;
    },
  });
  expect(await storing(client, call, work)).toBe('saved and told');
  expect(told).toEqual([call]);
  expect(await storing(fake().client, call, work)).toBe('saved');
});

it.each<[unknown, string]>([
  [undefined, 'undefined'],
  [null, 'null'],
  ['client', 'a string'],
  [{}, 'an object'],
  [{ jobs: { get() {}, output() {} } }, 'an object'],
  [{ jobs: { get() {}, output() {}, outputInfo: 'x' } }, 'an object'],
])('%j is no client that can read a file', (given, shown) => {
  expect(() => requireOutputClient('saveOutput', given)).toThrow(
    `saveOutput: the first argument must be a GenClient, not ${shown}.`,
  );
  expect(() => requireOutputClient('saveOutput', fake().client)).not.toThrow();
});

it.each<[unknown, string]>([
  [undefined, 'undefined'],
  [null, 'null'],
  ['client', 'a string'],
  [{ withOptions: true }, 'an object'],
  [{}, 'an object'],
])('%j is no client that can run jobs', (given, shown) => {
  expect(() => checkClient('createGenWorker', given)).toThrow(
    `createGenWorker: client must be a GenClient, not ${shown}.`,
  );
  expect(() => checkClient('createGenWorker', { withOptions() {} })).not.toThrow();
});

it('the id of a job is taken from the job, from its id, and from nothing else', () => {
  expect([jobIdOf('job_1'), jobIdOf({ id: 'job_2' }), jobIdOf(undefined as never)]).toEqual([
    'job_1',
    'job_2',
    undefined,
  ]);
});
