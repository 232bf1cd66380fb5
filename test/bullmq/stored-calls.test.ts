// Calls as records: which this version knows, where they go on, and how their files are kept. Needs no Redis.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { discardUploads, storeFiles, uploadFiles, withUploads } from '../../src/adapters/bullmq/call-files.js';
import {
  type GenJobData,
  hasFailed,
  isKnownRecord,
  jobProgress,
  loadRun,
  storedError,
  storeRun,
} from '../../src/adapters/bullmq/call-record.js';
import { queueNames } from '../../src/adapters/bullmq/connection.js';
import { wakeCall } from '../../src/adapters/bullmq/notes.js';
import { fromPath } from '../../src/adapters/node/index.js';
import { GenError } from '../../src/index.js';
import { rejection } from '../transport/support.js';

const RULES = {
  ...{ timeoutMs: null, resubmitPending: false, recover: {}, persistent: true, stores: false },
  ...{ pollMs: null, retryMs: null },
};
const call: GenJobData = { call: 'videos', params: { prompt: 'a' } };
const fresh = loadRun({ id: 'order-1', data: call }, RULES);
const { rules: _, ...stored } = fresh;
const runAt = (step: object, fields: object = {}) => ({ ...fresh, ...fields, step }) as typeof fresh;
const PNG = Buffer.from('89504e470d0a1a0a0000000d494844520000020000000200080600', 'hex');
const png = (name?: string) =>
  name === undefined ? new Blob([PNG], { type: 'image/png' }) : new File([PNG], name, { type: 'image/png' });

describe('a record', () => {
  it.each<[object, boolean]>([
    [{}, true],
    [{ version: 1 }, true],
    [{ version: 0 }, true],
    [{ version: 2 }, false],
    [{ call: 'songs' }, false],
    [{ call: 'characters' }, true],
    [{ run: stored }, true],
    [{ run: { ...stored, version: 2 } }, false],
    [{ version: 1, run: {} }, false],
  ])('with %j is known: %s', (fields, isKnown) => {
    expect(isKnownRecord({ ...call, ...fields })).toBe(isKnown);
  });

  it('begins under the id of its queue job, by the rules of its worker, and goes on where it stands', () => {
    expect(fresh).toMatchObject({ key: 'order-1', shortKey: 'order-1', rules: RULES, step: { type: 'create' } });
    const recover = { generation_failed: { times: 2 } } as never;
    const run = { ...stored, misses: 3 };
    expect(loadRun({ id: 'x', data: { ...call, run, recover } }, RULES)).toEqual({
      ...fresh,
      misses: 3,
      rules: { ...RULES, recover },
    });
    const long = loadRun({ id: 'k'.repeat(201), data: call }, RULES);
    expect(long.shortKey.length).toBeLessThan(200);
  });

  it.each<[object, number, boolean]>([
    [{}, 1, false],
    [{ failure: {} }, 1, false],
    [{ stalls: 0 }, 1, false],
    [{ failure: {}, stalls: 0 }, 0, false],
    [{ failure: {}, stalls: 0 }, 1, true],
    [{ failure: {}, stalls: 2 }, 2, false],
  ])('with %j whose worker died %i times has failed: %s', (fields, stalledCounter, isFailed) => {
    expect(hasFailed({ data: { ...call, ...fields }, stalledCounter })).toBe(isFailed);
  });

  it('keeps its error by name, message and fields', () => {
    const error = storedError({ ...call, failure: { name: 'JobFailedError', message: 'no', errorCode: 'x' } });
    expect(error).toBeInstanceOf(GenError);
    expect(error).toMatchObject({ name: 'JobFailedError', message: 'no', errorCode: 'x' });
    expect(storedError(call).message).toBe('undefined');
  });

  it.each([
    [{}, {}],
    [
      { quotedTokenCost: 0, finalTokenCost: 3 },
      { quotedTokenCost: 0, finalTokenCost: 3 },
    ],
    [{ quotedTokenCost: null, finalTokenCost: '3' }, {}],
  ])('whose job has the costs %j tells %j as its progress', (costs, told) => {
    expect(jobProgress({ id: 'job_1', status: 'queued', ...costs } as never)).toEqual({
      jobId: 'job_1',
      status: 'queued',
      ...told,
    });
  });

  /** What is done when a call is stored. */
  const storing = async (data: object, run: typeof fresh, priorities: { now?: number; asked?: number } = {}) => {
    const done: unknown[] = [];
    const note = (name: string) => async (value: unknown) => void done.push([name, value]);
    const queueJob = {
      ...{ data: { ...call, ...data }, stalledCounter: 4, updateData: note('data') },
      ...{ priority: priorities.now ?? 1000, opts: { priority: priorities.asked }, changePriority: note('priority') },
    };
    const at = { clock: { now: () => 7 }, notes: { forget: note('forget') } };
    const failure = Reflect.get(data, 'failsWith');
    await storeRun({ at, queueJob } as never, run, failure);
    return done;
  };
  const kept = (fields: object = {}, run: object = stored) => [
    'data',
    { ...call, version: 1, run: { ...stored, ...run }, storedAt: 7, ...fields },
  ];

  it('is stored without what is over, with its files until there is a job', async () => {
    const past = { trouble: { since: 1, failures: 2 }, failure: { name: 'x' }, stalls: 1, budgetScope: 'ann' };
    const given = { files: [{ path: '/a' }], uploads: ['upl_1'] };
    expect(await storing({ ...past, ...given }, fresh)).toEqual([kept({ budgetScope: 'ann', ...given })]);
    const tries = [{ jobId: 'job_1' }];
    const run = runAt({ type: 'wait', jobId: 'job_1', ms: 1 }, { tries });
    expect(await storing(given, run)).toEqual([
      kept({ uploads: ['upl_1'], jobId: 'job_1' }, { tries, step: run.step }),
      ['priority', { priority: 0 }],
    ]);
  });

  it.each<[object, string | undefined]>([
    [{ type: 'wait', jobId: 'job_1' }, 'job_1'],
    [{ type: 'wait', jobId: null }, undefined],
    [{ type: 'read', jobId: 'job_1' }, 'job_1'],
    [{ type: 'end', job: { id: 'job_1' } }, 'job_1'],
    [{ type: 'fail', again: { type: 'read', jobId: 'job_1' } }, 'job_1'],
    [{ type: 'fail', again: { type: 'create', key: 'k' } }, undefined],
    [{ type: 'fail' }, undefined],
    [{ type: 'create', key: 'k' }, undefined],
  ])('at the step %j is of the job %s, and its note stays with that job only', async (step, jobId) => {
    const at = (job: string | undefined) => (job === jobId ? [] : [['forget', job]]);
    const priority = jobId === undefined ? [] : [['priority', { priority: 0 }]];
    for (const before of ['job_1', 'job_0']) {
      const [data, ...rest] = await storing({ jobId: before }, runAt(step));
      expect(data).toEqual(kept(jobId === undefined ? {} : { jobId }, { step }));
      expect(rest).toEqual([...at(before), ...priority]);
    }
  });

  it('that fails says how often its worker had died, and its note is forgotten', async () => {
    const step = { type: 'end', job: { id: 'job_1' } };
    const failsWith = { name: 'x' };
    const [data, ...rest] = await storing({ jobId: 'job_1', failsWith }, runAt(step), { now: 0 });
    expect(data).toEqual(kept({ jobId: 'job_1', failsWith, failure: failsWith, stalls: 4 }, { step }));
    expect(rest).toEqual([['forget', 'job_1']]);
  });

  it('comes after the calls with a job, by the priority that it was given', async () => {
    expect((await storing({}, fresh, { now: 0 })).slice(1)).toEqual([['priority', { priority: 1000 }]]);
    expect((await storing({}, fresh, { now: 0, asked: 5 })).slice(1)).toEqual([['priority', { priority: 5 }]]);
    expect((await storing({}, fresh, { now: 5, asked: 5 })).slice(1)).toEqual([]);
  });
});

describe('the files of a call', () => {
  const keep = (params: object, name: GenJobData['call'] = 'videos', preflight = true) =>
    storeFiles(name, params as never, preflight);

  it('are kept beside its params, one source once: a path as it is, a Blob with its bytes', async () => {
    const fox = png('fox.png');
    const base64 = PNG.toString('base64');
    const params = { prompt: 'a', first_frame_upload_id: fox, last_frame_upload_id: fox };
    expect(await keep(params)).toEqual({
      params: { prompt: 'a', first_frame_upload_id: { $file: 0 }, last_frame_upload_id: { $file: 0 } },
      files: [{ base64, type: 'image/png', name: 'fox.png' }],
    });
    const two = { prompt: 'a', reference_image_upload_ids: [fromPath('/none.png'), png(), 'upl_1'] };
    expect(await keep(two, 'videos', false)).toEqual({
      params: { prompt: 'a', reference_image_upload_ids: [{ $file: 0 }, { $file: 1 }, 'upl_1'] },
      files: [{ path: '/none.png' }, { base64, type: 'image/png' }],
    });
    expect(await keep(call.params)).toEqual({ params: call.params });
  });

  it('are refused where they would not survive a restart, or are too many bytes for Redis', async () => {
    const stream = { stream: () => png().stream(), size: 27, name: 'fox.png' };
    await expect(keep({ prompt: 'a', first_frame_upload_id: stream })).rejects.toThrow(
      'first_frame_upload_id: a queued call takes a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.',
    );
    const text = { prompt: 'a', first_frame_upload_id: 'upl_1', last_frame_upload_id: new Uint8Array(4) };
    await expect(keep(text)).rejects.toThrow('last_frame_upload_id: a queued call takes a Blob or fromPath(path)');
    const half = () => new Blob([new Uint8Array(8 * 1024 * 1024)], { type: 'image/png' });
    // As much as there may be, and a file that stands in two places counts once.
    const twice = half();
    const most = { prompt: 'a', reference_image_upload_ids: [twice, half(), twice] };
    await expect(keep(most, 'videos', false)).resolves.toMatchObject({ files: [{}, {}] });
    const everywhere = { prompt: 'a', first_frame_upload_id: stream, reference_image_upload_ids: [stream] };
    await expect(keep(everywhere, 'videos', false)).rejects.toThrow(/^first_frame_upload_id: /);
    const ids = (...more: Blob[]) => ({ prompt: 'a', reference_image_upload_ids: [half(), half(), ...more] });
    const tooMany = await rejection(keep(ids(png(), half()), 'videos', false));
    expect(tooMany).toMatchObject({
      message: expect.stringMatching(
        /^reference_image_upload_ids\[[012]\]: the queue keeps at most 16 MB of Blobs for a call\. Pass fromPath\(path\), or upload the file first and pass its upload_id\.$/,
      ),
    });
  });

  it('are uploaded with their purpose, and deleted again where one of them fails, which is named by its field', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gen-stored-'));
    const path = join(folder, 'fox.png');
    writeFileSync(path, PNG);
    const log: unknown[] = [];
    const types: string[] = [];
    const client = {
      uploads: {
        async upload({ name, size, type }: File, { purpose, preflight }: Record<string, unknown>) {
          types.push(type);
          log.push([name, size, purpose, preflight]);
          return { upload_id: `upl_${log.length}` };
        },
        delete: async (id: string, options: object) => void log.push([id, options]),
      },
    };
    const params = { first_frame_upload_id: { $file: 0 }, reference_image_upload_ids: [{ $file: 1 }] };
    const upload = (fields: Partial<GenJobData>) =>
      uploadFiles(client as never, { ...call, params, ...fields }, new AbortController().signal);
    const blob = { base64: PNG.toString('base64'), type: 'image/png', name: 'owl.png' };
    const { base64, type } = blob;
    await upload({ files: [{ base64, type }] });
    expect(log.splice(0)).toEqual([['', PNG.length, undefined, undefined]]);
    expect(types.splice(0)).toEqual(['image/png']);
    expect(await upload({ files: [blob, { path }], preflight: false })).toEqual(['upl_1', 'upl_2']);
    expect(log.splice(0)).toEqual([
      ['owl.png', PNG.length, undefined, false],
      ['fox.png', PNG.length, undefined, false],
    ]);
    await upload({ call: 'characters', files: [blob] });
    expect(log.splice(0)).toEqual([['owl.png', PNG.length, 'character', undefined]]);
    rmSync(folder, { recursive: true });
    await expect(upload({ files: [blob, { path }] })).rejects.toMatchObject({
      name: 'UploadError',
      step: 'prepare',
      message: `reference_image_upload_ids[0]: "${path}" cannot be read on the machine of this worker.`,
    });
    expect(log.at(-1)).toEqual(['upl_1', { maxRetries: 1 }]);
    expect(await upload({})).toEqual([]);
  });

  it('stand in the params by the ids of their uploads', () => {
    const params = { prompt: 'a', first_frame_upload_id: { $file: 1 }, reference_image_upload_ids: [{ $file: 0 }] };
    expect(withUploads(params, undefined)).toBe(params);
    expect(withUploads(params, ['upl_0', 'upl_1'])).toEqual({
      prompt: 'a',
      first_frame_upload_id: 'upl_1',
      reference_image_upload_ids: ['upl_0'],
    });
  });

  const files = [{ path: '/a' }];
  const tries = [{ jobId: 'job_1' }];
  it.each<[string, object, object, object | undefined, boolean]>([
    ['a call that has none', { files }, { step: { type: 'fail', reason: 'refused' } }, undefined, false],
    ['a call that is refused', { files }, { step: { type: 'fail', reason: 'refused' } }, { files }, true],
    ['one out of time', { files }, { step: { type: 'fail', reason: 'timeout' } }, undefined, false],
    ['one whose answer is lost', { files }, { step: { type: 'fail', reason: 'lost' } }, undefined, false],
    ['one that goes on', { files }, { step: { type: 'wait' } }, undefined, false],
    ['an end with after-job', { cleanup: 'after-job' }, { tries, step: { type: 'end' } }, undefined, true],
    ['an end without a job', { cleanup: 'after-job' }, { tries: [], step: { type: 'end' } }, undefined, false],
    ['an end without after-job', {}, { tries, step: { type: 'end' } }, undefined, false],
    ['a wait with after-job', { cleanup: 'after-job' }, { tries, step: { type: 'wait' } }, undefined, false],
  ])('are deleted or not after %s', async (name, fields, run, record, isDeleted) => {
    const done: unknown[] = [];
    const client = { uploads: { delete: async (id: string) => void done.push(id) } };
    const uploads = name.endsWith('none') ? undefined : ['upl_1', 'upl_2'];
    const data = { ...call, ...fields, ...(uploads && { uploads }) };
    const queueJob = { data, updateData: async (value: object) => void done.push(value) };
    await discardUploads(client as never, queueJob as never, { ...fresh, ...run } as never);
    expect(done).toEqual([...(isDeleted ? ['upl_1', 'upl_2'] : []), ...(record ? [{ ...call, ...record }] : [])]);
  });
});

describe('a queue', () => {
  it('has its calls, creates and notes under one name, and a prefix where one is given', () => {
    const connection = { host: 'x' };
    expect(queueNames(connection, {})).toEqual({
      ...{ calls: 'gen-client', creates: 'gen-client-creates', notes: 'gen-client-notes', options: { connection } },
    });
    expect(queueNames(connection, { name: 'q', prefix: '{p}' })).toEqual({
      ...{ calls: 'q', creates: 'q-creates', notes: 'q-notes', options: { connection, prefix: '{p}' } },
    });
  });

  it.each<[string, object | undefined, unknown]>([
    ['that is gone', undefined, []],
    ['that is awake', { delayed: [false] }, []],
    ['that sleeps', { delayed: [true] }, ['promote', { priority: 0, lifo: true }]],
    ['that woke by itself', { delayed: [true, false], fails: true }, [{ priority: 0, lifo: true }]],
  ])('wakes a call %s', async (_, how, expected) => {
    expect((await waking(how)).done).toEqual(expected);
  });

  it('tells why a call that still sleeps cannot be woken, and wakes one behind the others where asked to', async () => {
    const { done, error } = await waking({ delayed: [true, true], fails: true });
    expect([done, error]).toEqual([[], new Error('no promotion')]);
    expect((await waking({ delayed: [true] }, { lifo: false })).done).toEqual([
      'promote',
      { priority: 0, lifo: false },
    ]);
  });

  async function waking(how: { delayed?: boolean[]; fails?: boolean } | undefined, options?: { lifo: boolean }) {
    const done: unknown[] = [];
    const job = how && {
      isDelayed: async () => how.delayed?.shift(),
      async promote() {
        if (how.fails) throw new Error('no promotion');
        done.push('promote');
      },
      changePriority: async (given: object) => void done.push(given),
    };
    const queue = { getJob: async () => job };
    const woken = wakeCall(queue as never, 'order-1', options);
    const error = await woken.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return { done, error };
  }
});
