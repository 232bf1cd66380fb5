// Most failed polls of a paid job must not end its wait. None may use up other jobs' polls or cause a busy loop.
import { describe, expect, it } from 'vitest';
import { RateLimitError } from '../../src/errors/index.js';
import type { ClientOptions } from '../../src/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { fakeTimers } from '../support/fake-timers.js';
import { BASE_URL, freshKey, json, rejection, stubbed } from '../transport/support.js';
import { hint, running, startProcess } from './processes.js';
import { virtualClock } from './virtual-clock.js';

const DONE = { id: 'job_1', status: 'completed', providerOutputUrl: `${BASE_URL}/v1/jobs/job_1/output` };
const done = () => json({ data: { job: DONE } });
const failed = (status: number) => () => json({ error: { code: 'odd', message: 'odd' } }, { status });
const QUICK = { pollIntervalMs: 5 };

describe('a response to a poll', () => {
  it.each([408, 409, 410, 418, 423, 425, 429, 499, 500, 502, 503, 504, 520, 599])(
    "with %i doesn't end a wait",
    async (status) => {
      const { client, requests } = stubbed([failed(status), done]);
      await expect(client.waitForJob('job_1', QUICK)).resolves.toMatchObject({ status: 'completed' });
      expect(requests.length).toBeGreaterThan(1);
    },
  );

  it.each(['internal_error', 'unknown_code'])("with status 200 and the error %s doesn't end a wait", async (code) => {
    const { client } = stubbed([() => json({ success: false, error: { code } }), done]);
    await expect(client.waitForJob('job_1', QUICK)).resolves.toMatchObject(DONE);
  });

  it("about another job doesn't end a wait", async () => {
    const other = () => json({ data: { job: { ...DONE, id: 'job_2' } } });
    const { client, requests } = stubbed([other, done]);
    await expect(client.waitForJob('job_1', QUICK)).resolves.toMatchObject({ id: 'job_1' });
    expect(requests).toHaveLength(2);
    await expect(stubbed(other).client.jobs.get('job_1')).rejects.toThrow('the response is about another job');
  });

  it.each([400, 401, 403, 404])('with %i ends the wait immediately', async (status) => {
    const { client, requests } = stubbed([failed(status), done]);
    await expect(client.waitForJob('job_1', QUICK)).rejects.toMatchObject({ status });
    expect(requests).toHaveLength(1);
  });
});

describe('a key function', () => {
  const throwSealed = (): never => {
    throw new Error('the vault is sealed');
  };
  it.each<[string, failing: () => unknown]>([
    ['rejects', async () => throwSealed()],
    ['throws', throwSealed],
    ['returns an empty string', () => ''],
    ['returns undefined', () => undefined],
  ])("that %s once doesn't end a wait, on the first call or later", async (_, failing) => {
    for (const failingCall of [1, 2]) {
      const clock = virtualClock();
      let calls = 0;
      const key = freshKey();
      const apiKey = () => (++calls === failingCall ? failing() : key);
      const options: object = { apiKey, [CLOCK]: clock };
      const { client } = stubbed([() => json({ data: { job: { ...DONE, status: 'processing' } } }), done], options);
      await expect(clock.until(client.waitForJob('job_1'))).resolves.toMatchObject({ status: 'completed' });
    }
  });

  it('that always rejects is the cause of the timeout error', async () => {
    const cause = new Error('the vault is sealed');
    const { client } = stubbed(done, { apiKey: () => Promise.reject(cause) });
    const error = await rejection(client.waitForJob('job_1', { timeoutMs: 50 }));
    expect(error).toMatchObject({ name: 'WaitTimeoutError', cause: { name: 'ConnectionError', cause } });
  });

  it('that is missing, like any other API key, ends the wait immediately', async () => {
    const { client } = stubbed(done, { apiKey: undefined });
    await expect(client.waitForJob('job_1')).rejects.toThrow('apiKey is missing');
  });
});

describe("an account's polls", () => {
  it("aren't used up by a job with repeated notifications", async () => {
    const { clock, jobWaits, polledIds } = startProcess(running);
    const ids = ['notified', ...Array.from({ length: 20 }, (_, at) => `other_${at}`)];
    for (const id of ids) jobWaits.waitForJob(running(id), { timeoutMs: 60_000 }).catch(() => {});
    for (let ms = 0; ms < 30_000; ms += 20) {
      jobWaits.notify(hint('notified'));
      await clock.advance(20);
    }
    expect(polledIds.filter((id) => id === 'notified').length).toBeLessThan(18);
    expect(new Set(polledIds).size).toBe(21);
    await clock.advance(60_000);
  });

  const details = { code: 'rate_limited', recovery: 'retry', method: 'GET', url: 'x', status: 429 } as const;

  it.each([
    ['wait for the longer Retry-After of two', [30_000, 1_000], 30_000],
    ["pause for at most a minute, whatever a job's Retry-After", [110_000], 60_000],
  ])('%s', async (_, requested, pauseMs) => {
    const remaining = [...requested];
    const { clock, jobWaits, polledIds, pollTimes } = startProcess((id) => {
      const retryAfterMs = remaining.shift();
      if (retryAfterMs !== undefined) throw new RateLimitError('full', { ...details, retryAfterMs });
      return running(id);
    });
    const wait = (id: string) => jobWaits.waitForJob(id, { timeoutMs: 200_000 }).catch(() => {});
    const waits = requested.map((_, at) => wait(`limited_${at}`));
    await clock.advance(0);
    waits.push(wait('other'));
    await clock.until(Promise.all(waits));
    expect(pollTimes[polledIds.indexOf('other')]).toBe(pauseMs);
  });
});

describe('a clock set forward by an hour during a wait', () => {
  it("doesn't shorten the timeout: a failed job is still recovered", async () => {
    const sandbox = createSandbox({ clock: 'manual', limits: 'off' });
    const client = sandbox.client();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const realNow = Date.now;
    const call = client.videos.createAndWait(
      { prompt: 'a fox' },
      { recover: { generation_failed: 1 }, timeoutMs: 600_000 },
    );
    await sandbox.advance(1_000);
    Date.now = () => realNow() + 3_600_000;
    try {
      for (let step = 0; step < 40; step++) await sandbox.advance(1_000);
    } finally {
      Date.now = realNow;
    }
    const job = await call;
    expect(job).toMatchObject({ status: 'completed', tries: [{ status: 'failed' }, { status: 'completed' }] });
  });
});

describe('a broken client', () => {
  fakeTimers();

  it("doesn't starve a healthy client's wait on the same job", async () => {
    const apiKey = freshKey();
    const offline = stubbed(() => Promise.reject(new Error('proxy is down')), { apiKey });
    const healthy = stubbed(done, { apiKey });
    const offlineWait = offline.client.waitForJob('job_1', { timeoutMs: 60_000 });
    const healthyWait = healthy.client.waitForJob('job_1');
    const start = Date.now();
    await expect(advanceUntil(healthyWait, 250)).resolves.toMatchObject(DONE);
    expect(Date.now() - start).toBeLessThan(15_000);
    await expect(advanceUntil(offlineWait)).resolves.toMatchObject(DONE);
  });

  it("doesn't end a healthy client's wait on the same job", async () => {
    const apiKey = freshKey();
    const revoked = stubbed(() => json({ error: 'invalid_api_key' }, { status: 401 }), { apiKey });
    const healthy = stubbed(done, { apiKey });
    const rejected = rejection(advanceUntil(revoked.client.waitForJob('job_1')));
    await expect(advanceUntil(healthy.client.waitForJob('job_1'))).resolves.toMatchObject(DONE);
    expect(await rejected).toMatchObject({ code: 'invalid_api_key' });
  });
});

describe('a disabled poll limit', () => {
  fakeTimers();

  it.each<[string, ClientOptions]>([
    ["rateLimit: 'off'", { rateLimit: 'off' }],
    ['limit: Infinity', { limits: { 'jobs.get': { limit: Number.POSITIVE_INFINITY } } }],
  ])("doesn't delay 200 waits (%s)", async (_, options) => {
    const polled = new Set<string>();
    const { client } = stubbed(({ url }) => {
      const id = url.split('/').at(-1) ?? '';
      const isFinished = polled.has(id);
      polled.add(id);
      return json({ data: { job: { ...DONE, id, ...(!isFinished && { status: 'processing' }) } } });
    }, options);
    const start = Date.now();
    const ids = Array.from({ length: 200 }, (_, at) => `job_${at}`);
    await advanceUntil(Promise.all(ids.map((id) => client.waitForJob(id, { pollIntervalMs: 1_000 }))), 250);
    expect(Date.now() - start).toBeLessThan(5_000);
  });
});
