// Each invalid wait option makes its call reject before any request, with a message that describes the valid values.
import { describe, expect, it } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import type { Recover } from '../../src/rules/run-state.js';
import { json, rejection, stubbed } from '../transport/support.js';

const INVALID_WAIT_OPTIONS: readonly object[] = [
  ...[{ signal: {} }, { timeoutMs: true }, { timeoutMs: '5' }, { timeoutMs: null }, { onUpdate: 'log' }],
  ...[{ pollIntervalMs: -1 }, { pollIntervalMs: '5' }, { pollIntervalMs: false }, { throwOnFailure: 'no' }],
];
const INVALID_CREATE_OPTIONS = [
  ...[{ maxRetries: -1 }, { headers: 'x-a: b' }, { preflight: 'lax' }, { budget: {} }, { budget: { usage() {} } }],
  ...[{ onCreated: 7 }, { resubmitPending: 1 }, { onUploadProgress: 7 }, { cleanup: 'now' }, { label: '' }],
  { recover: null },
];

function setUp() {
  const { client, requests } = stubbed(() => json({}));
  return { client, requests };
}

it.each<object>([...INVALID_WAIT_OPTIONS, ...INVALID_CREATE_OPTIONS])(
  '%j rejects the call before any request, and the message starts with its name',
  async (options) => {
    const { client, requests } = setUp();
    const calls = [client.videos.createAndWait({ prompt: 'a fox' }, options)];
    if (INVALID_WAIT_OPTIONS.includes(options)) calls.push(client.waitForJob('job_1', options));
    for (const call of calls) {
      const error = await rejection(call);
      expect(error).toBeInstanceOf(GenError);
      expect((error as Error).message).toMatch(new RegExp(`^${Object.keys(options)[0]} must be `));
    }
    expect(requests).toEqual([]);
  },
);

describe('recover', () => {
  const invalidRules: readonly unknown[] = [
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
  it.each(invalidRules.map((rule) => [rule]))('rejects the rule %j', async (rule) => {
    for (const code of ['generation_timeout', 'generation_failed', 'generation_unavailable']) {
      const { client, requests } = setUp();
      const error = await rejection(
        client.videos.createAndWait({ prompt: 'a fox' }, { recover: { [code]: rule } as never }),
      );
      expect(String(error)).toContain(`recover.${code} must be a whole number of retries`);
      expect(requests).toEqual([]);
    }
  });

  it('rejects an error code for which a retry cannot help, and lists the valid codes', async () => {
    const { client } = setUp();
    const error = await rejection(
      client.videos.createAndWait({ prompt: 'a fox' }, { recover: { prompt_rejected: 1 } as never }),
    );
    expect(String(error)).toMatch(
      /recover has no option "prompt_rejected".*generation_timeout, generation_failed, generation_unavailable/,
    );
  });

  it.each<[string, Recover, number]>([
    ['zero retries', { generation_failed: 0 }, 1],
    ['an empty list of models', { generation_failed: { models: [] } }, 1],
    ['an undefined rule', { generation_failed: undefined }, 1],
    ['two retries', { generation_failed: 2 }, 3],
    ['two models', { generation_failed: { models: ['svc-video-mini', 'svc-video-pro'] } }, 3],
  ])('creates one job plus one per retry with %s', async (_, recover, jobCount) => {
    const job = { id: 'job_1', status: 'failed', errorCode: 'generation_failed', mediaType: 'video' };
    const { client, requests } = stubbed(() => json({ success: true, data: { job } }));
    const error = await rejection(client.videos.createAndWait({ prompt: 'a fox' }, { recover }));
    expect(error).toMatchObject({ name: 'JobFailedError', code: 'generation_failed' });
    expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(jobCount);
  });
});

it.each([5, undefined, null, { id: 'job_1' }, 'job_1'])('waitForJobs accepts a list of jobs, not %j', async (jobs) => {
  const { client, requests } = setUp();
  const error = await rejection(client.waitForJobs(jobs as never).next());
  expect(error).toBeInstanceOf(GenError);
  expect((error as Error).message).toContain('waitForJobs: jobs must be a list such as [first.id, second], not ');
  expect(requests).toEqual([]);
});
