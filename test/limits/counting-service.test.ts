// Clients of a service that limits the creates in a sliding window, on a manual clock.
import { describe, expect, it } from 'vitest';
import type { ClientOptions } from '../../src/index.js';
import { created, freshKey, json, stubbed } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

interface CountingOptions {
  readonly limit: number;
  readonly windowMs: number;
  /** Delay after which the service counts a request, even an aborted one. */
  readonly countsAfterMs?: () => number;
  readonly retryAfter?: string | undefined;
}

/** Opens a service that accepts `limit` creates per sliding window. Its clients share one account. */
function openCountingService({ limit, windowMs, countsAfterMs = () => 5, retryAfter }: CountingOptions) {
  const clock = Object.assign(virtualClock(), { random: { next: () => 0.5, uuid: () => crypto.randomUUID() } });
  const accepted: number[] = [];
  const rejected: number[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const respond = async () => {
    await pause(countsAfterMs());
    const counted = accepted.filter((atMs) => atMs > clock.now() - windowMs);
    if (counted.length < limit) {
      accepted.push(clock.now());
      return json(created(`job_${accepted.length}`));
    }
    rejected.push(clock.now());
    const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    return json({ error: { code: 'rate_limited' } }, { status: 429, headers });
  };
  const apiKey = freshKey();
  const newClient = (options: ClientOptions = {}) =>
    stubbed(respond, { apiKey, [Symbol.for('gen-client.clock')]: clock, ...options } as ClientOptions).client;
  return { clock, newClient, accepted, rejected, pause };
}

const PROMPT = { prompt: 'a fox at dawn' };

describe('an attempt without a response', () => {
  it.each(['aborted', 'timed out'])("retains its slot until it leaves the service's window (%s)", async (outcome) => {
    let countsAfterMs = 400;
    const { clock, newClient, accepted, rejected } = openCountingService({
      limit: 20,
      windowMs: 2_000,
      countsAfterMs: () => countsAfterMs,
    });
    const abort = new AbortController();
    const options = outcome === 'aborted' ? {} : { timeoutMs: 50 };
    const limits = { 'videos.create': { limit: 20, windowMs: 2_000 } };
    const hasty = newClient({ limits, maxRetries: 0, ...options });
    clock.after(50, () => outcome === 'aborted' && abort.abort());
    const create = () => hasty.videos.create(PROMPT, { signal: abort.signal }).catch(() => {});
    await clock.until(Promise.all(Array.from({ length: 20 }, create)));
    await clock.advance(500);
    expect(accepted).toHaveLength(20);
    countsAfterMs = 5;
    const patient = hasty.withOptions({ timeoutMs: 60_000 });
    await clock.until(Promise.all(Array.from({ length: 20 }, () => patient.videos.create(PROMPT))));
    expect(accepted).toHaveLength(40);
    expect(rejected).toEqual([]);
    // One window plus the grace period after the abort.
    expect(Math.max(...accepted) - Math.min(...accepted)).toBeLessThan(7_000);
  });
});

describe('clients of one account with different limits', () => {
  it('share one count, and each waits until the count is below its own limit', async () => {
    const { clock, newClient, accepted, rejected } = openCountingService({ limit: 20, windowMs: 60_000 });
    const client = newClient();
    const stricter = client.withOptions({ limits: { 'videos.create': { limit: 15, windowMs: 60_000 } } });
    const first = Array.from({ length: 12 }, () => client.videos.create(PROMPT));
    const second = Array.from({ length: 15 }, () => stricter.videos.create(PROMPT));
    await clock.advance(1_000);
    expect(accepted).toHaveLength(15);
    expect(client.limits()['videos.create']).toMatchObject({ limit: 20, free: 5, queued: 0 });
    expect(stricter.limits()['videos.create']).toMatchObject({ limit: 15, free: 0, queued: 12 });
    await clock.until(Promise.all([...first, ...second]));
    expect(rejected).toEqual([]);
  });

  it.each([
    ['without a limit', { limit: Number.POSITIVE_INFINITY }],
    ['with a shorter window', { limit: 20, windowMs: 1_000 }],
    ['with a longer window', { limit: 20, windowMs: 90_000 }],
  ])('count the calls of a client %s', async (_, rate) => {
    const { clock, newClient, accepted, rejected } = openCountingService({ limit: 20, windowMs: 60_000 });
    const client = newClient();
    const other = client.withOptions({ limits: { 'videos.create': rate } });
    await clock.until(Promise.all(Array.from({ length: 12 }, () => other.videos.create(PROMPT))));
    await clock.advance(5_000);
    expect(client.limits()['videos.create']).toMatchObject({ free: 8 });
    const second = Array.from({ length: 20 }, () => client.videos.create(PROMPT));
    await clock.advance(1_000);
    expect(accepted).toHaveLength(20);
    await clock.advance(60_000);
    expect(accepted).toHaveLength(32);
    await clock.until(Promise.all(second));
    expect(rejected).toEqual([]);
  });
});

describe('an undocumented limit', () => {
  it.each([undefined, '1', '2'])('resumes creates gradually after a 429 (Retry-After: %s)', async (retryAfter) => {
    const { clock, newClient, accepted, rejected } = openCountingService({ limit: 20, windowMs: 2_000, retryAfter });
    const client = newClient();
    const all = Array.from({ length: 100 }, () => client.images.create(PROMPT));
    await clock.until(Promise.all(all));
    expect(accepted).toHaveLength(100);
    const firstMs = Math.min(...rejected);
    const afterBurst = rejected.filter((atMs) => atMs > firstMs);
    expect(rejected.length - afterBurst.length).toBe(80);
    expect(afterBurst.length).toBeLessThanOrEqual(60);
    // The other 80 calls need at least four more windows.
    expect(Math.max(...accepted) - Math.min(...accepted)).toBeLessThan(30_000);
  });
});
