// Where a row of a batch stands by the journal, and which failures stop the rows after it.
import { describe, expect, it } from 'vitest';
import {
  attemptKey,
  createsByRun,
  createsOf,
  isNotAdmitted,
  isSystemic,
  isTargetAway,
  isUnpaid,
  journaledJob,
  standingOf,
  tokensOf,
} from '../../src/cli/batch/standing.js';
import { BudgetExceededError } from '../../src/errors/client-errors.js';
import {
  APIError,
  AuthenticationError,
  ConnectionError,
  DownloadError,
  GenError,
  InsufficientBalanceError,
  PermissionDeniedError,
  ServerError,
  StorageError,
  UploadError,
} from '../../src/errors/index.js';
import type { CreateState, JournaledCreate } from '../../src/rules/journal.js';
import { nextKey } from '../../src/rules/run-state.js';
import { shortenKey } from '../../src/transport/idempotency.js';

const create = (fields: Partial<JournaledCreate>): JournaledCreate => ({
  key: 'row',
  call: 'videos',
  params: {},
  at: '2026-01-01T00:00:00.000Z',
  state: 'completed',
  ...fields,
});
const row = { key: 'row' } as Parameters<typeof standingOf>[0];
const refused = (status: number, Class = APIError, code = `http_${status}`) =>
  new Class('no', { status, code, recovery: 'retry', method: 'POST', url: '/x', attempts: 1 });
const away = (attempts: number) => new ConnectionError('away', { method: 'POST', url: '/x', attempts });
const inUpload = (cause: unknown) => new UploadError('no', { step: 'put', cause });

describe('a row', () => {
  it('stands where the last job of its last try stands', () => {
    const creates = (...keys: string[]) =>
      createsByRun(
        keys.map((key) => create({ key })),
        [row],
      );
    const [second, third] = [attemptKey(row, 1), attemptKey(row, 2)];
    expect(new Set(['row', second, third]).size).toBe(3);
    expect(attemptKey(row, 0)).toBe('row');
    const standing = (...keys: string[]) => {
      const { attempt, create: last } = standingOf(row, creates(...keys));
      return [attempt, last?.key];
    };
    expect(standing()).toEqual([0, undefined]);
    expect(standing('row')).toEqual([0, 'row']);
    expect(standing('row', 'row:r2', 'row:r3')).toEqual([0, 'row:r3']);
    expect(standing('row', 'row:r2', 'row:r2:w1', 'row:r2:w1:f1')).toEqual([0, 'row:r2:w1:f1']);
    expect(standing('row', 'row:f1')).toEqual([0, 'row:f1']);
    expect(standing('row:r2', 'row:w1')).toEqual([0, undefined]);
    expect(standing('row', 'row:x1', 'row:r', 'other:r2')).toEqual([0, 'row']);
    expect(standing('row', 'row:r2', second)).toEqual([1, second]);
    expect(standing('row', third)).toEqual([0, 'row']);
    expect(standing('row', second, third, `${third}:r2`)).toEqual([2, `${third}:r2`]);
  });

  it('has none of the creates of a row whose own key is its key with such an ending', () => {
    const other = { ...row, key: 'row:f1' };
    const keys = ['row', 'row:f1', 'row:f1:r2', 'row:r2'];
    const creates = createsByRun(
      keys.map((key) => create({ key })),
      [row, other],
    );
    expect([standingOf(row, creates).create?.key, standingOf(other, creates).create?.key]).toEqual([
      'row:r2',
      'row:f1:r2',
    ]);
    expect(createsOf('row', creates).map(({ key }) => key)).toEqual(['row', 'row:r2']);
  });

  it.each([200, 201, 250, 255])('of a key of %i characters stands where a second key was accepted', (length) => {
    const key = 'k'.repeat(length);
    const run = { key, shortKey: shortenKey(key) };
    const later = [
      nextKey({ ...run, failedJobs: 0 }, 1),
      nextKey({ ...run, failedJobs: 1 }),
      nextKey({ ...run, failedJobs: 1 }, 2),
      nextKey({ ...run, failedJobs: 11 }, 3),
    ];
    const standing = (...states: CreateState[]) =>
      standingOf(
        { ...row, key },
        createsByRun(
          states.map((state, at) => create({ key: [key, ...later][at] ?? '', state })),
          [{ key }],
        ),
      );
    expect(standing('closed', 'stored').create).toMatchObject({ key: later[0], state: 'stored' });
    expect(standing('accepted', 'closed').create).toMatchObject({ key, state: 'accepted' });
    expect(standing('closed', 'closed').create).toMatchObject({ key: later[0], state: 'closed' });
    expect(standing('failed', 'closed', 'closed', 'open').create).toMatchObject({ key: later[2], state: 'open' });
    expect(standing('closed', 'failed', 'failed', 'closed', 'stored').create).toMatchObject({ key: later[3] });
  });

  it.each<[Partial<JournaledCreate> | undefined, boolean, boolean]>([
    [undefined, true, true],
    [{ state: 'closed' }, true, true],
    [{ state: 'open' }, false, false],
    [{ state: 'completed' }, false, false],
    [{ state: 'failed' }, false, true],
    [{ state: 'failed', errorCode: 'reference_asset_pending' }, true, true],
    [{ state: 'completed', errorCode: 'reference_asset_pending' }, false, false],
  ])('whose create is %j has to be paid for: %s, and with --retry-failed: %s', (fields, isDue, isDueAgain) => {
    const standing = { attempt: 0, create: fields && create(fields) };
    expect([isUnpaid(standing, false), isUnpaid(standing, true)]).toEqual([isDue, isDueAgain]);
  });

  it.each<[Partial<JournaledCreate>, number]>([
    [{}, 0],
    [{ quotedTokens: 12 }, 12],
    [{ quotedTokens: 12, chargedTokens: 10 }, 10],
    [{ quotedTokens: 12, chargedTokens: 0 }, 0],
    [{ state: 'failed', quotedTokens: 12 }, 0],
    [{ state: 'failed', quotedTokens: 12, chargedTokens: 3 }, 3],
  ])('with %j counts %i tokens', (fields, tokens) => {
    expect(tokensOf(create(fields))).toBe(tokens);
  });

  it.each<[Partial<JournaledCreate>, object]>([
    [{}, { id: '', status: 'completed' }],
    [
      { jobId: 'job_1', state: 'stored', quotedTokens: 12, chargedTokens: 0, params: { model: 'a' } },
      { id: 'job_1', status: 'completed', finalTokenCost: 0, quotedTokenCost: 12, modelId: 'a' },
    ],
    [
      { jobId: 'job_1', state: 'failed', errorCode: 'x', model: 'b', params: { model: 'a' } },
      { id: 'job_1', status: 'failed', errorCode: 'x', modelId: 'b' },
    ],
    [{ params: { model: 7 } }, { id: '', status: 'completed' }],
  ])('with %j has the job %j', (fields, job) => {
    expect(journaledJob(create(fields))).toEqual(job);
  });
});

describe('a failure', () => {
  const paused = refused(503, ServerError, 'dispatch_disabled');
  it.each<[string, unknown, boolean]>([
    ['a wrong key', refused(401, AuthenticationError), true],
    ['no permission', refused(403, PermissionDeniedError), true],
    ['no balance', refused(402, InsufficientBalanceError), true],
    ['a service that is away', away(0), true],
    ['a lost answer', away(1), false],
    ['a journal that cannot be written', new GenError('The journal "x" could not be written'), true],
    ['another wrong call', new GenError('wrong: The journal '), false],
    ['a pause of generation', paused, true],
    ['a server error', refused(503, ServerError), false],
    ['a refusal', refused(400), false],
    ['anything else', new Error('The journal x'), false],
  ])('%s, also of an upload, stops the rows after it: %s %s', (_, error, stops) => {
    expect([isSystemic(error), isSystemic(inUpload(error))]).toEqual([stops, stops]);
  });

  it('of the budget, or of a create that was never sent, lets the row wait', () => {
    const over = new BudgetExceededError('over', {} as never);
    expect([over, away(0), away(1), refused(402)].map(isNotAdmitted)).toEqual([true, true, false, false]);
  });

  it('of the disk or of the store says that no file can be placed', () => {
    const download = (code: string) => new DownloadError('no', { jobId: 'job_1', code: code as 'interrupted' });
    const store = new StorageError('no', { code: 'x', store: 's3' });
    expect([store, download('cannot_write'), download('interrupted'), refused(500)].map(isTargetAway)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
