import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { advanceUntil } from '../support/advance-until.js';
import { json, stubbed } from '../transport/support.js';

const PENDING = { status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 30 } };
const DONE = {
  status: 'completed',
  providerOutputUrl: 'https://service.test/prefix/v1/jobs/job_2/output',
  providerOutputExpiresAt: '2026-03-02T10:00:00.000Z',
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Creates a client of a service that reviews the reference of the first create, and completes the second. */
function reviewService() {
  return stubbed([
    () => json({ data: { job: { id: 'job_1', ...PENDING } } }),
    () => json({ data: { job: { id: 'job_2', ...DONE } } }),
  ]);
}

it.each([
  ['images', { prompt: 'x' }],
  ['videos', { prompt: 'x' }],
  ['videoEdits', { model: 'svc-video-pro', prompt: 'x', video: 'https://a.test/a.mp4' }],
  ['characters', { name: 'Ann', prompt: 'x' }],
] as const)(
  '%s.createAndWait resubmits a pending reference with an idempotency key derived from the one in the body',
  async (resource, params) => {
    const { client, requests } = reviewService();
    const namespace: { createAndWait(params: never): Promise<{ id: string }> } = client[resource];
    const job = namespace.createAndWait({ ...params, idempotency_key: 'order-7' } as never);
    expect((await advanceUntil(job)).id).toBe('job_2');
    const keys = requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys[0]).toBe('order-7');
    expect(keys[1]).toMatch(/^order-7.+/);
    // The body and the header must not contain different keys.
    for (const { body } of requests) expect(JSON.parse(body)).toEqual(params);
  },
);

it('a create is retried with the same idempotency key while its character is under review, even at the rate limit', async () => {
  const review = () => json({ error: { code: 'character_pending' }, data: { retry_after: 1 } }, { status: 409 });
  const limits = { 'videos.create': { limit: 2, windowMs: 60_000 } };
  const { client, requests } = stubbed([review, review, () => json({ data: { job: { id: 'job_2', ...DONE } } })], {
    limits,
  });
  await advanceUntil(client.videos.createAndWait({ prompt: 'x', character_ids: ['c'] }, { idempotencyKey: 'order-7' }));
  expect(requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['order-7', 'order-7', 'order-7']);
});

it('createAndWait accepts `timeoutMs: false`', async () => {
  const { client, requests } = stubbed(() => json({ data: { job: { id: 'job_2', ...DONE } } }));
  await client.videos.createAndWait({ prompt: 'x' }, { timeoutMs: false });
  expect(requests).toHaveLength(1);
});

it('a create that fails before it is awaited causes no unhandled rejection', async () => {
  vi.useRealTimers();
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  const { client } = stubbed(() => json({ error: 'prompt_too_long' }, { status: 400 }));
  const job = client.videos.createAndWait({ prompt: 'x' });
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
  await expect(job).rejects.toMatchObject({ code: 'prompt_too_long' });
});
