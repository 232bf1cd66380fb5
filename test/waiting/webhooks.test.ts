// A verified webhook ends a wait. Anything that only resembles one causes a poll.
import { describe, expect, it } from 'vitest';
import { measure } from '../../bench/waiting/measure.js';
import { ConnectionError, JobFailedError, WaitTimeoutError } from '../../src/errors/index.js';
import type { Job } from '../../src/schemas/job.js';
import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import { signWebhook, verifyWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { BASE_URL, done, fullFor, running, type Setting, startProcess, verified } from './processes.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

describe('a verified webhook of a completed job', () => {
  it('polls the job immediately if a poll is free', async () => {
    for (const more of [{}, { limits: fullFor(() => 2_000) }]) {
      const { jobWaits, clock, reads } = startProcess(done, more);
      const wait = jobWaits.waitForJob(running('a'));
      jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
      await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed', finalTokenCost: 4 });
      expect(reads).toEqual(['a']);
    }
  });

  it('ends the wait immediately if no poll is free within two seconds, without the cost and the expiry', async () => {
    const { jobWaits, clock, reads } = startProcess(done, { limits: fullFor(() => 2_001) });
    const wait = jobWaits.waitForJob(running('a'));
    const startMs = clock.now();
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
    const job = await clock.until(wait);
    expect(job).toEqual({
      id: 'a',
      status: 'completed',
      mediaType: 'video',
      providerOutputUrl: `${BASE_URL}/v1/jobs/a/output`,
    });
    expect(clock.now() - startMs).toBe(0);
    expect(reads).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('ends the wait after two seconds if the poll hangs or returns the previous state', async () => {
    for (const read of [() => new Promise<Job>(() => {}), running]) {
      const { jobWaits, clock, reads, scheduler } = startProcess(read);
      const wait = jobWaits.waitForJob(running('a'));
      const startMs = clock.now();
      jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
      await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
      expect(clock.now() - startMs).toBe(2_000);
      expect(reads.length).toBeGreaterThan(0);
      expect(scheduler.busy).toBe(false);
      expect(clock.timers).toBe(0);
    }
  });

  it('ends a wait that starts later', async () => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000) });
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
    await clock.advance(0);
    await expect(clock.until(jobWaits.waitForJob(running('a')))).resolves.not.toHaveProperty('finalTokenCost');
  });
});

describe('a later poll', () => {
  /** Ends a wait with an event while no poll is free. */
  async function endByEvent(read: (id: string) => Job | Promise<Job>) {
    let fullMs = 60_000;
    const reported: object[] = [];
    const more = { jobs: { isWatched: () => true, announced: (job: object) => void reported.push(job) } };
    const process = startProcess(read, { limits: fullFor(() => fullMs), ...more });
    const { jobWaits, clock } = process;
    const wait = jobWaits.waitForJob(running('a'));
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
    await clock.until(wait);
    fullMs = 0;
    return { ...process, told: reported };
  }

  it('repeats until it returns the charge if it fails or the job is still running', async () => {
    const away = () => Promise.reject(new ConnectionError('The service is unavailable'));
    for (const miss of [away, running]) {
      let misses = 3;
      const { clock, reads, told: reported } = await endByEvent((id) => (misses-- > 0 ? miss(id) : done(id)));
      await clock.advance(120_000);
      expect(reads).toHaveLength(4);
      await clock.advance(600_000);
      expect({ reads: reads.length, told: reported, timers: clock.timers }).toEqual({ reads: 4, told: [], timers: 0 });
    }
  });

  it('stops after failing for five minutes, and the outcome is reported without the charge', async () => {
    const {
      clock,
      reads,
      told: reported,
    } = await endByEvent(() => Promise.reject(new ConnectionError('The service is unavailable')));
    await clock.advance(300_000);
    expect(reported).toEqual([]);
    await clock.advance(60_000);
    expect({ reads: reads.length, told: reported, timers: clock.timers }).toEqual({
      reads: 8,
      told: [{ id: 'a', status: 'completed' }],
      timers: 0,
    });
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
    const { jobWaits, clock, reads } = startProcess(running, { limits: fullFor(() => 60_000) });
    const [own, other] = [jobWaits.waitForJob(running('a')), jobWaits.waitForJob(running('b'), { timeoutMs: 1_000 })];
    const bytes = bytesOf('a');
    const event = await verifiedBytes(of(bytes), clock);
    bytes.set(bytesOf('b'));
    jobWaits.notify(event);
    await expect(clock.until(own)).resolves.toMatchObject({ id: 'a', status: 'completed' });
    await expect(clock.until(other)).rejects.toThrow(WaitTimeoutError);
    // Only the other wait polled, once.
    expect(reads).toEqual(['b']);
  });

  it('ends the wait if its buffer is detached', async () => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000) });
    const wait = jobWaits.waitForJob(running('a'));
    const bytes = bytesOf('a');
    const event = await verifiedBytes(bytes, clock);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    jobWaits.notify(event);
    await expect(clock.until(wait)).resolves.toMatchObject({ id: 'a', status: 'completed' });
  });
});

describe('the wait polls its job and continues after', () => {
  const completed = (clock: VirtualClock) => verified(completedEvent('a', BASE_URL), clock);
  const copies: Record<string, (event: WebhookEvent) => object> = {
    'a spread copy': (event) => ({ ...event }),
    'a structured clone': (event) => structuredClone(event),
    'a JSON copy': (event) => JSON.parse(JSON.stringify(event)) as object,
    'a copy with every own property': (event) => Object.defineProperties({}, Object.getOwnPropertyDescriptors(event)),
    'an object that inherits from one': (event) => Object.create(event) as object,
    'a hand-made event': () => completedEvent('a', BASE_URL),
  };

  it.each(Object.entries(copies))('%s of a verified event', async (_, copy) => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000) });
    const wait = jobWaits.waitForJob(running('a'));
    jobWaits.notify(copy(await completed(clock)) as never);
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  it('an event whose file is on another origin', async () => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000) });
    const wait = jobWaits.waitForJob(running('a'));
    jobWaits.notify(await verified(completedEvent('a', 'https://elsewhere.test'), clock));
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  it.each<[string, object, Setting]>([
    ['an event without a link', { id: 'a', status: 'completed' }, {}],
    ['an event with an invalid link', { id: 'a', status: 'completed', providerOutputUrl: 'elsewhere' }, {}],
    ['an event if the base URL is unknown', completedEvent('a', BASE_URL).data.job, { knownBaseUrl: () => undefined }],
  ])('%s', async (_, job, more) => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000), ...more });
    const wait = jobWaits.waitForJob(running('a'));
    const event = await verified({ ...completedEvent('a', BASE_URL), data: { job } }, clock);
    expect(() => jobWaits.notify(event)).not.toThrow();
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  it('a verified event that was modified later: only its signed content counts', async () => {
    const { jobWaits, clock } = startProcess(done, { limits: fullFor(() => 60_000) });
    const wait = jobWaits.waitForJob(running('a'));
    const event = await completed(clock);
    Object.assign((event.data as { job: object }).job, { id: 'b', providerOutputUrl: 'https://elsewhere.test/x' });
    jobWaits.notify(event);
    await expect(clock.until(wait)).resolves.toMatchObject({
      id: 'a',
      providerOutputUrl: `${BASE_URL}/v1/jobs/a/output`,
    });
  });

  it("a failed job's event, and throws with the reason from the poll", async () => {
    const failed: Job = { ...running('a'), status: 'failed', errorCode: 'generation_rejected' };
    const { jobWaits, clock, reads } = startProcess(() => failed, { limits: fullFor(() => 10_000) });
    const wait = jobWaits.waitForJob(running('a'));
    const event = {
      ...completedEvent('a', BASE_URL),
      type: 'job.failed',
      data: { job: { ...completedEvent('a', BASE_URL).data.job, status: 'failed' } },
    };
    jobWaits.notify(await verified(event, clock));
    const error = await clock.until(wait).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_rejected' });
    expect(reads).toEqual(['a']);
  });
});

describe("a job's outcome is reported from its event", () => {
  it('if no wait matches the job, and otherwise from the poll', async () => {
    const reported: object[] = [];
    const { jobWaits, clock } = startProcess(done, { jobs: { announced: (job) => void reported.push(job) } });
    const wait = jobWaits.waitForJob(running('a'));
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
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
      const jobs = { isWatched, announced: (job: object) => void reported.push(job) };
      const { jobWaits } = startProcess(done, { limits: fullFor(() => 60_000), jobs }, clock);
      const wait = jobWaits.waitForJob(running('a'));
      jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
      await clock.until(wait);
      expect(reported).toEqual(isWatched() ? [{ id: 'a', status: 'completed' }] : []);
    }
  });
});

describe('500 waits with webhooks', () => {
  const kinds = [{ modelId: 'svc-video-pro', mediaType: 'video', share: 1, fromMs: 60_000, toMs: 240_000 }];

  it('end 0.1 s late on average and 2.5 s at worst, with at most 450 polls', async () => {
    const { meanLateMs, worstLateMs, polls, rejected, failed } = await measure(500, {
      kinds,
      webhooks: 1,
      deliveryMs: 0,
    });
    expect({ rejected, failed }).toEqual({ rejected: 0, failed: 0 });
    expect(meanLateMs).toBeLessThan(100);
    expect(worstLateMs).toBeLessThan(2_500);
    expect(polls).toBeLessThanOrEqual(450);
  });

  it('end within 6 s on average if 10 % of the webhooks are lost', async () => {
    const { meanLateMs, polls, failed } = await measure(500, { kinds, webhooks: 0.9, deliveryMs: 0 });
    expect(failed).toBe(0);
    expect(meanLateMs).toBeLessThan(6_000);
    expect(polls).toBeLessThanOrEqual(450);
  });
});
