// A verified webhook ends a wait. Any other notification causes a poll.
import { describe, expect, it } from 'vitest';
import { measure } from '../../bench/waiting/measure.js';
import { ConnectionError, JobFailedError, WaitTimeoutError } from '../../src/errors/index.js';
import type { Job } from '../../src/schemas/job.js';
import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import { signWebhook, verifyWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { rejection } from '../transport/support.js';
import { BASE_URL, done, noSlotFor, type ProcessOptions, running, startProcess, verified } from './processes.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

/** Starts a wait for job a, and notifies it of this event, or of the job's verified webhook. */
async function notifiedWait(
  read: (id: string) => Job | Promise<Job>,
  setting: ProcessOptions = {},
  eventOf: (clock: VirtualClock) => Promise<unknown> = completedWebhook,
) {
  const started = startProcess(read, setting);
  const wait = started.jobWaits.waitForJob(running('a'));
  started.jobWaits.notify((await eventOf(started.clock)) as never);
  return { ...started, wait };
}

const completedWebhook = (clock: VirtualClock) => verified(completedEvent('a', BASE_URL), clock);
const FULL = { limits: noSlotFor(() => 60_000) };

describe('a verified webhook of a completed job', () => {
  it('makes the wait poll immediately if a poll slot is free within two seconds', async () => {
    for (const setting of [{}, { limits: noSlotFor(() => 2_000) }]) {
      const { clock, polledIds, wait } = await notifiedWait(done, setting);
      await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed', finalTokenCost: 4 });
      expect(polledIds).toEqual(['a']);
    }
  });

  it('ends the wait immediately, without a cost or expiry, if no poll slot frees up within two seconds', async () => {
    const { clock, polledIds, elapsed, wait } = await notifiedWait(done, { limits: noSlotFor(() => 2_001) });
    expect(await clock.until(wait)).toEqual({
      id: 'a',
      status: 'completed',
      mediaType: 'video',
      providerOutputUrl: `${BASE_URL}/v1/jobs/a/output`,
    });
    expect(elapsed()).toBe(0);
    expect(polledIds).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('ends the wait after two seconds if the poll hangs or returns the previous state', async () => {
    for (const read of [() => new Promise<Job>(() => {}), running]) {
      const { clock, polledIds, scheduler, elapsed, wait } = await notifiedWait(read);
      await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
      expect(elapsed()).toBe(2_000);
      expect(polledIds.length).toBeGreaterThan(0);
      expect(scheduler.busy).toBe(false);
      expect(clock.timers).toBe(0);
    }
  });

  it('ends a wait that starts later', async () => {
    const { jobWaits, clock } = startProcess(done, FULL);
    jobWaits.notify(await completedWebhook(clock));
    await clock.advance(0);
    await expect(clock.until(jobWaits.waitForJob(running('a')))).resolves.not.toHaveProperty('finalTokenCost');
  });
});

describe('a poll for the charge after the wait', () => {
  /** Ends a wait with an event while no poll slot is free. */
  async function endByEvent(read: (id: string) => Job | Promise<Job>) {
    let fullMs = 60_000;
    const reported: object[] = [];
    const jobs = { isWatched: () => true, announce: (job: object) => void reported.push(job) };
    const started = await notifiedWait(read, { limits: noSlotFor(() => fullMs), jobs });
    await started.clock.until(started.wait);
    fullMs = 0;
    return { ...started, reported };
  }
  const unavailable = () => Promise.reject(new ConnectionError('The service is unavailable'));

  it('repeats until it returns the charge if it fails or the job is still running', async () => {
    for (const miss of [unavailable, running]) {
      let misses = 3;
      const { clock, polledIds, reported } = await endByEvent((id) => (misses-- > 0 ? miss(id) : done(id)));
      await clock.advance(120_000);
      expect(polledIds).toHaveLength(4);
      await clock.advance(600_000);
      expect([polledIds.length, reported, clock.timers]).toEqual([4, [], 0]);
    }
  });

  it('stops after failing for five minutes, and the outcome is reported without the charge', async () => {
    const { clock, polledIds, reported } = await endByEvent(unavailable);
    await clock.advance(300_000);
    expect(reported).toEqual([]);
    await clock.advance(60_000);
    expect([polledIds.length, reported, clock.timers]).toEqual([8, [{ id: 'a', status: 'completed' }], 0]);
  });
});

describe('a verified webhook whose buffer the server reuses', () => {
  const bytesOf = (id: string) => new TextEncoder().encode(JSON.stringify(completedEvent(id, BASE_URL)));
  /** Verifies job a's event in these bytes. */
  async function verifiedBytes(body: Uint8Array | ArrayBuffer, clock: VirtualClock): Promise<WebhookEvent> {
    const timestamp = Math.floor(clock.now() / 1000);
    const { headers } = await signWebhook(new TextDecoder().decode(body), { secret: 'whsec_a', timestamp });
    return verifyWebhook({ body, headers }, { secret: 'whsec_a', now: clock.now });
  }

  it.each<[string, (bytes: Uint8Array<ArrayBuffer>) => Uint8Array | ArrayBuffer]>([
    ['a view', (bytes) => bytes],
    ['a Buffer', (bytes) => Buffer.from(bytes.buffer)],
    ['an ArrayBuffer', (bytes) => bytes.buffer],
  ])('ends the wait only for its own job: %s', async (_, of) => {
    const { jobWaits, clock, polledIds } = startProcess(running, FULL);
    const [wait, other] = [jobWaits.waitForJob(running('a')), jobWaits.waitForJob(running('b'), { timeoutMs: 1_000 })];
    const bytes = bytesOf('a');
    const event = await verifiedBytes(of(bytes), clock);
    bytes.set(bytesOf('b'));
    jobWaits.notify(event);
    await expect(clock.until(wait)).resolves.toMatchObject({ id: 'a', status: 'completed' });
    await expect(clock.until(other)).rejects.toThrow(WaitTimeoutError);
    // Only the other wait polled, once.
    expect(polledIds).toEqual(['b']);
  });

  it('ends the wait if its buffer is detached', async () => {
    const { clock, wait } = await notifiedWait(done, FULL, async (clock) => {
      const bytes = bytesOf('a');
      const event = await verifiedBytes(bytes, clock);
      structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
      return event;
    });
    await expect(clock.until(wait)).resolves.toMatchObject({ id: 'a', status: 'completed' });
  });
});

describe('a wait polls its job instead of trusting', () => {
  const copies: Record<string, (event: WebhookEvent) => object> = {
    'a spread copy of a verified event': (event) => ({ ...event }),
    'a structured clone of a verified event': (event) => structuredClone(event),
    'a JSON copy of a verified event': (event) => JSON.parse(JSON.stringify(event)) as object,
    'a copy with every own property of a verified event': (event) =>
      Object.defineProperties({}, Object.getOwnPropertyDescriptors(event)),
    'an object that inherits from a verified event': (event) => Object.create(event) as object,
    'a hand-made event': () => completedEvent('a', BASE_URL),
  };

  it.each(Object.entries(copies))('%s', async (_, copy) => {
    const { clock, wait } = await notifiedWait(done, FULL, async (clock) => copy(await completedWebhook(clock)));
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  it.each<[string, object, ProcessOptions]>([
    ['an event whose file is on another origin', completedEvent('a', 'https://elsewhere.test').data.job, {}],
    ['an event without a link', { id: 'a', status: 'completed' }, {}],
    ['an event with an invalid link', { id: 'a', status: 'completed', providerOutputUrl: 'elsewhere' }, {}],
    ['an event if the base URL is unknown', completedEvent('a', BASE_URL).data.job, { knownBaseUrl: () => undefined }],
  ])('%s', async (_, job, setting) => {
    const event = { ...completedEvent('a', BASE_URL), data: { job } };
    const { clock, wait } = await notifiedWait(done, { ...FULL, ...setting }, (clock) => verified(event, clock));
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  it("a failed job's event, and throws with the reason from the poll", async () => {
    const failed: Job = { ...running('a'), status: 'failed', errorCode: 'generation_rejected' };
    const job = { ...completedEvent('a', BASE_URL).data.job, status: 'failed' };
    const event = { ...completedEvent('a', BASE_URL), type: 'job.failed', data: { job } };
    const setting = { limits: noSlotFor(() => 10_000) };
    const { clock, polledIds, wait } = await notifiedWait(
      () => failed,
      setting,
      (clock) => verified(event, clock),
    );
    const error = await clock.until(rejection(wait));
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_rejected' });
    expect(polledIds).toEqual(['a']);
  });
});

it('only the signed content of a verified event counts, even if the event is modified', async () => {
  const { clock, wait } = await notifiedWait(done, FULL, async (clock) => {
    const event = await completedWebhook(clock);
    Object.assign((event.data as { job: object }).job, { id: 'b', providerOutputUrl: 'https://elsewhere.test/x' });
    return event;
  });
  const providerOutputUrl = `${BASE_URL}/v1/jobs/a/output`;
  await expect(clock.until(wait)).resolves.toMatchObject({ id: 'a', providerOutputUrl });
});

describe("a job's outcome is reported from its event", () => {
  it('only if no wait polls the job', async () => {
    const reported: object[] = [];
    const jobs = { announce: (job: object) => void reported.push(job) };
    const { jobWaits, clock, wait } = await notifiedWait(done, { jobs });
    await clock.until(wait);
    expect(reported).toEqual([]);
    jobWaits.notify(await verified(completedEvent('b', BASE_URL), clock));
    await clock.advance(0);
    expect(reported).toEqual([{ id: 'b', status: 'completed' }]);
  });

  it('on Workers, where no later poll can return its charge', async () => {
    for (const isWatched of [() => true, () => false]) {
      const reported: object[] = [];
      const clock = { ...virtualClock(), perRequest: true };
      const jobs = { isWatched, announce: (job: object) => void reported.push(job) };
      const { jobWaits } = startProcess(done, { ...FULL, jobs }, clock);
      const wait = jobWaits.waitForJob(running('a'));
      jobWaits.notify(await completedWebhook(clock));
      await clock.until(wait);
      expect(reported).toEqual(isWatched() ? [{ id: 'a', status: 'completed' }] : []);
    }
  });
});

describe('500 waits with webhooks', () => {
  const kinds = [{ modelId: 'svc-video-pro', mediaType: 'video', share: 1, fromMs: 60_000, toMs: 240_000 }];

  it('end 0.1 s late on average and 2.5 s at worst, with at most 450 polls', async () => {
    const figures = await measure(500, { kinds, webhooks: 1, deliveryMs: 0 });
    const { meanDelayMs, worstDelayMs, polls, rejected, failed } = figures;
    expect({ rejected, failed }).toEqual({ rejected: 0, failed: 0 });
    expect(meanDelayMs).toBeLessThan(100);
    expect(worstDelayMs).toBeLessThan(2_500);
    expect(polls).toBeLessThanOrEqual(450);
  });

  it('end within 6 s on average if 10% of the webhooks are lost', async () => {
    const { meanDelayMs, polls, failed } = await measure(500, { kinds, webhooks: 0.9, deliveryMs: 0 });
    expect(failed).toBe(0);
    expect(meanDelayMs).toBeLessThan(6_000);
    expect(polls).toBeLessThanOrEqual(450);
  });
});
