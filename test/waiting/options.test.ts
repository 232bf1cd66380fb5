// What the options of waits must be: each wrong one is refused before any call, in words that say what is right.
import { describe, expect, it } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import type { GenClient } from '../../src/index.js';
import type { Recover } from '../../src/rules/run-state.js';
import { json, rejection, stubbed } from '../transport/support.js';

const TIME_LIMIT = 'a number of milliseconds above 0, or false for no limit';
const TRIES = 'a whole number of further tries, or { models: [...] } with the models to try once each';
const BUDGET = 'what createBudget({ maxTokens }) returns, or an object with the methods usage, release';

/** An option, a value that it cannot have, how the error shows that value, and what it must be. */
type Wrong = readonly [option: string, value: unknown, shown: string, what: string];
const waits: readonly Wrong[] = [
  ['signal', {}, 'an object', 'an AbortSignal'],
  ['timeoutMs', true, 'true', TIME_LIMIT],
  ['timeoutMs', '5', '"5"', TIME_LIMIT],
  ['timeoutMs', null, 'null', TIME_LIMIT],
  ['pollIntervalMs', -1, '-1', 'a number of milliseconds above 0'],
  ['pollIntervalMs', '5', '"5"', 'a number of milliseconds above 0'],
  ['pollIntervalMs', false, 'false', 'a number of milliseconds above 0'],
  ['onUpdate', 'log', 'a string', 'a function'],
  ['throwOnFailure', 'no', '"no"', 'true or false'],
];
const creates: readonly Wrong[] = [
  ...waits,
  ['maxRetries', -1, '-1', 'a whole number, 0 or more'],
  ['headers', 'x-a: b', 'a string', "an object such as { 'x-team': 'film' }"],
  ['preflight', 'lax', '"lax"', 'true or false'],
  ['budget', {}, 'an object', BUDGET],
  ['budget', { reserve() {} }, 'an object', BUDGET],
  ['budget', { refund() {} }, 'an object', BUDGET],
  ['onCreated', 7, '7', 'a function'],
  ['resubmitPending', 1, '1', 'true or false'],
  ['onUploadProgress', 7, '7', 'a function'],
  ['cleanup', 'now', '"now"', 'one of "after-job"'],
  ['label', '', '""', 'a non-empty string'],
  ['recover', null, 'null', 'an object with rules by error code'],
];

function unreached() {
  const { client, seen } = stubbed(() => json({}));
  return { client, seen };
}

async function refusalOf(wrong: Wrong, call: (client: GenClient, options: object) => Promise<unknown>): Promise<void> {
  const [option, value, shown, what] = wrong;
  const { client, seen } = unreached();
  const error = await rejection(call(client, { [option]: value }));
  expect(error).toBeInstanceOf(GenError);
  expect((error as Error).message).toBe(`${option} must be ${what}, not ${shown}.`);
  expect(seen).toEqual([]);
}

it.each(waits)('waitForJob refuses %s: %j, shown as %s: it must be %s', async (...wrong) => {
  await refusalOf(wrong, (client, options) => client.waitForJob('job_1', options));
});

it.each(creates)('createAndWait refuses %s: %j, shown as %s: it must be %s', async (...wrong) => {
  await refusalOf(wrong, (client, options) => client.videos.createAndWait({ prompt: 'a fox' }, options));
});

describe('recover', () => {
  const wrong: readonly unknown[] = [
    1.5,
    -1,
    '2',
    null,
    {},
    { models: 'svc-video-mini' },
    { models: [''] },
    { models: ['svc-video-mini', 7] },
    { models: ['svc-video-mini'], tries: 2 },
    { model: ['svc-video-mini'] },
  ];
  it.each(wrong.map((rule) => [rule]))('refuses the rule %j', async (rule) => {
    for (const code of ['generation_timeout', 'generation_failed', 'generation_unavailable']) {
      const { client, seen } = unreached();
      const error = await rejection(
        client.videos.createAndWait({ prompt: 'a fox' }, { recover: { [code]: rule } as never }),
      );
      expect(String(error)).toContain(`recover.${code} must be ${TRIES}, not `);
      expect(seen).toEqual([]);
    }
  });

  it('names the codes after which another try can help', async () => {
    const { client } = unreached();
    const error = await rejection(
      client.videos.createAndWait({ prompt: 'a fox' }, { recover: { prompt_rejected: 1 } as never }),
    );
    expect(String(error)).toMatch(
      /recover has no option "prompt_rejected".*generation_timeout, generation_failed, generation_unavailable/,
    );
  });

  it.each<[string, Recover, number]>([
    ['no try', { generation_failed: 0 }, 1],
    ['no model', { generation_failed: { models: [] } }, 1],
    ['a rule that is left out', { generation_failed: undefined }, 1],
    ['two tries', { generation_failed: 2 }, 3],
    ['two models', { generation_failed: { models: ['svc-video-mini', 'svc-video-pro'] } }, 3],
  ])('of %s makes so many jobs', async (_, recover, jobs) => {
    const job = { id: 'job_1', status: 'failed', errorCode: 'generation_failed', mediaType: 'video' };
    const { client, seen } = stubbed(() => json({ success: true, data: { job } }));
    const error = await rejection(client.videos.createAndWait({ prompt: 'a fox' }, { recover }));
    expect(error).toMatchObject({ name: 'JobFailedError', code: 'generation_failed' });
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(jobs);
  });
});

it('waitForJobs takes a list of jobs, and says so', async () => {
  for (const [jobs, shown] of [
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{ id: 'job_1' }, 'an object'],
    ['job_1', 'a string'],
  ] as const) {
    const { client, seen } = unreached();
    const error = await rejection(client.waitForJobs(jobs as never).next());
    expect(error).toBeInstanceOf(GenError);
    expect((error as Error).message).toBe(`waitForJobs: jobs must be a list such as [first.id, second], not ${shown}.`);
    expect(seen).toEqual([]);
  }
});
