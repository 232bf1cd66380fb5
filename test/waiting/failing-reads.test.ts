// Failed polls of a paid job must not end its wait, use up other jobs' polls, or cause a busy loop.
import { describe, expect, it } from 'vitest';
import { RateLimitError } from '../../src/errors/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { freshKey, json, rejection, stubbed } from '../transport/support.js';
import { hint, running, startProcess } from './processes.js';
import { virtualClock } from './virtual-clock.js';

const DONE = {
  id: 'job_1',
  status: 'completed',
  providerOutputUrl: 'https://service.test/prefix/v1/jobs/job_1/output',
};
const done = () => json({ data: { job: DONE } });
const responses = (status: number) => () => json({ error: { code: 'odd', message: 'odd' } }, { status });
const QUICK = { pollIntervalMs: 5 };

describe('a response to a poll', () => {
  it.each([408, 409, 410, 418, 423, 425, 429, 499, 500, 502, 503, 504, 520, 599])(
    "with %i doesn't end a wait",
    async (status) => {
      const { client, seen } = stubbed([responses(status), done]);
      await expect(client.waitForJob('job_1', QUICK)).resolves.toMatchObject({ status: 'completed' });
      expect(seen.length).toBeGreaterThan(1);
    },
  );

  it.each([400, 401, 403, 404])('with %i ends the wait immediately', async (status) => {
    const { client, seen } = stubbed([responses(status), done]);
    await expect(client.waitForJob('job_1', QUICK)).rejects.toMatchObject({ status });
    expect(seen).toHaveLength(1);
  });
});

describe('a key function', () => {
  const away = (): never => {
    throw new Error('the vault is unavailable');
  };
  const odd: [string, () => unknown][] = [
    ['throws', async () => away()],
    ['throws immediately', away],
    ['returns an empty string', () => ''],
    ['returns undefined', () => undefined],
  ];
  it.each(odd)("that %s once doesn't end a wait, on the first call or later", async (_, oddKey) => {
    for (const oddCall of [1, 2]) {
      const clock = virtualClock();
      let calls = 0;
      const key = freshKey();
      const apiKey = () => (++calls === oddCall ? oddKey() : key);
      const options: object = { apiKey, [CLOCK]: clock };
      const { client } = stubbed([() => json({ data: { job: { ...DONE, status: 'processing' } } }), done], options);
      await expect(clock.until(client.waitForJob('job_1'))).resolves.toMatchObject({ status: 'completed' });
    }
  });

  it('that never returns a key is the cause of the timeout', async () => {
    const away = new Error('the vault is unavailable');
    const { client } = stubbed(done, { apiKey: () => Promise.reject(away) });
    const error = await rejection(client.waitForJob('job_1', { timeoutMs: 50 }));
    expect(error).toMatchObject({ name: 'WaitTimeoutError', cause: { name: 'ConnectionError', cause: away } });
  });

  it("isn't awaited if the key is missing", async () => {
    const { client } = stubbed(done, { apiKey: undefined });
    await expect(client.waitForJob('job_1')).rejects.toThrow('The API key is missing');
  });
});

describe("an account's polls", () => {
  it("aren't used up by a job with repeated notifications", async () => {
    const { clock, jobWaits, reads } = startProcess(running);
    const waits = Array.from({ length: 20 }, (_, at) =>
      jobWaits.waitForJob(running(`other_${at}`), { timeoutMs: 60_000 }),
    );
    waits.push(jobWaits.waitForJob(running('loud'), { timeoutMs: 60_000 }));
    for (const wait of waits) wait.catch(() => {});
    for (let ms = 0; ms < 30_000; ms += 20) {
      jobWaits.notify(hint('loud'));
      await clock.advance(20);
    }
    const loud = reads.filter((id) => id === 'loud').length;
    expect(loud).toBeLessThan(18);
    expect(new Set(reads).size).toBe(21);
    await clock.advance(60_000);
  });

  const rejection = (retryAfterMs: number) =>
    new RateLimitError('full', {
      code: 'rate_limited',
      recovery: 'retry',
      method: 'GET',
      url: 'x',
      status: 429,
      retryAfterMs,
    });

  it.each([
    ['wait for the longer Retry-After of two', [30_000, 1_000], 30_000],
    ["pause for at most a minute, whatever a job's Retry-After", [110_000], 60_000],
  ])('%s', async (_, requested, heldMs) => {
    const rest = [...requested];
    const { clock, jobWaits, reads, at } = startProcess((id) => {
      const retryAfterMs = rest.shift();
      if (retryAfterMs !== undefined) throw rejection(retryAfterMs);
      return running(id);
    });
    const wait = (id: string) => jobWaits.waitForJob(id, { timeoutMs: 200_000 }).catch(() => {});
    const waits = requested.map((_, at) => wait(`refused_${at}`));
    await clock.advance(0);
    waits.push(wait('other'));
    await clock.until(Promise.all(waits));
    expect(at[reads.indexOf('other')]).toBe(heldMs);
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
