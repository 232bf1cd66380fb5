// A job that ends immediately says little about how long other jobs take, so it must not delay their polls.
import { GenClient } from 'gen-client';
import { describe, expect, it, vi } from 'vitest';
import { fakeTimers } from '../support/fake-timers.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';

const [FAST, PRO] = ['svc-video-fast', 'svc-video-pro'];
const FAST_JOB_MS = 3_000_000;
const PRO_JOB_MS = 60_000;

/** Creates a client of a service with two models. The job `first.id` ends before its first poll, and PRO jobs take a minute. */
function createService(first: { readonly id: string; readonly status: string; readonly tookMs: number }) {
  const startMs = Date.now();
  const timeAt = (ms: number) => new Date(startMs + ms).toISOString();
  const jobOf = (id: string) => ({
    id,
    mediaType: 'video',
    modelId: id.startsWith('pro') ? PRO : FAST,
    createdAt: timeAt(0),
  });
  const fetch = async (url: string) => {
    const id = url.split('/').at(-1) ?? '';
    const isFirst = id === first.id;
    const takesMs = isFirst ? first.tookMs : id.startsWith('pro') ? PRO_JOB_MS : FAST_JOB_MS;
    if (Date.now() - startMs < takesMs) return json({ data: { job: { ...jobOf(id), status: 'processing' } } });
    const status = isFirst ? first.status : 'completed';
    const end = { status, completedAt: timeAt(takesMs), providerOutputUrl: `${BASE_URL}/${id}`, errorCode: null };
    return json({ data: { job: { ...jobOf(id), ...end } } });
  };
  return { client: new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch }), jobOf };
}

describe('a job that ends right after its create', () => {
  fakeTimers();

  it.each([
    ['failed', 0],
    ['failed', 1_000],
    ['completed', 0],
    ['completed', 1_000],
  ])("doesn't delay the polls of other models (%s after %i ms)", async (status, tookMs) => {
    const { client, jobOf } = createService({ id: 'fast-0', status, tookMs });
    const abort = new AbortController();
    const wait = (id: string) =>
      client.waitForJob({ ...jobOf(id), status: 'processing' } as never, { signal: abort.signal });
    await vi.advanceTimersByTimeAsync(tookMs);
    // A bare ID is polled immediately.
    await Promise.all([client.waitForJob('fast-0').catch(() => {}), vi.advanceTimersByTimeAsync(1_000)]);
    const others = Array.from({ length: 40 }, (_, at) => wait(`fast-${at + 1}`).catch(() => {}));
    const completedIds: string[] = [];
    for (let at = 0; at < 5; at++) void wait(`pro-${at}`).then(({ id }) => completedIds.push(id));
    await vi.advanceTimersByTimeAsync(2 * PRO_JOB_MS);
    expect(completedIds.toSorted()).toEqual(['pro-0', 'pro-1', 'pro-2', 'pro-3', 'pro-4']);
    abort.abort();
    await Promise.all(others);
  });
});
