// What a client writes to its journal, entry by entry, under a clock that is held.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenError, type Journal, type JournalEntry } from '../../src/index.js';
import { created, json, rejection, stubbed } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const PROMPT = { prompt: 'a fox at dawn' };
const AT = '2026-01-01T00:00:00.000Z';
const answer = (job: object, more: object = {}) => json({ success: true, data: { job, ...more } });

afterEach(() => {
  vi.useRealTimers();
});

/** A client that writes to a journal of two functions. */
function journaling(
  steps: Parameters<typeof stubbed>[0],
  { append, ...options }: ClientOptions & { readonly append?: (entry: JournalEntry) => unknown } = {},
) {
  const entries: JournalEntry[] = [];
  const write = async (entry: JournalEntry) => {
    await append?.(entry);
    entries.push(entry);
  };
  const journal: Journal = { append: write, entries: () => entries };
  const warnings: string[] = [];
  const silent = () => {};
  const warn = (text: string) => void warnings.push(text);
  const logger = { error: silent, warn, info: silent, debug: silent };
  const clock = virtualClock();
  const { client, seen } = stubbed(steps, {
    journal,
    logger,
    maxRetries: 0,
    [Symbol.for('gen-client.clock')]: clock,
    ...options,
  });
  return { client, clock, seen, entries, warnings };
}

describe('a create', () => {
  it.each<[string, (client: ReturnType<typeof journaling>['client']) => Promise<unknown>, object]>([
    ['images', (client) => client.images.create(PROMPT, { idempotencyKey: 'k' }), PROMPT],
    ['videos', (client) => client.videos.create(PROMPT, { idempotencyKey: 'k' }), PROMPT],
    [
      'videoEdits',
      (client) =>
        client.videoEdits.create({ ...PROMPT, model: 'svc-video-fast', video: 'https://a.test/a.mp4' } as never, {
          idempotencyKey: 'k',
        }),
      { ...PROMPT, model: 'svc-video-fast', video: 'https://a.test/a.mp4' },
    ],
  ])('of %s is opened with what is sent, and accepted with its job and its quote', async (call, create, params) => {
    const { client, entries } = journaling(() => json(created()));
    await create(client);
    expect(entries).toEqual([
      { key: 'k', call, params: expect.objectContaining(params), at: AT },
      { phase: 'accepted', key: 'k', jobId: 'job_1', at: AT, quotedTokens: 4 },
    ]);
    expect(entries.flatMap(Object.keys)).not.toContain('label');
  });

  it('is accepted with the quote of its job where the answer has no other, and without one where nobody says', async () => {
    const { client, entries } = journaling([
      () => answer({ id: 'job_1', status: 'processing', quotedTokenCost: 9 }),
      () => answer({ id: 'job_2', status: 'processing' }),
      () => answer({ id: 'job_3', status: 'processing', quotedTokenCost: 'nine' }),
    ]);
    for (const idempotencyKey of ['a', 'b', 'c']) await client.videos.create(PROMPT, { idempotencyKey });
    expect(entries.filter(({ phase }) => phase === 'accepted')).toStrictEqual([
      { phase: 'accepted', key: 'a', jobId: 'job_1', at: AT, quotedTokens: 9 },
      { phase: 'accepted', key: 'b', jobId: 'job_2', at: AT },
      { phase: 'accepted', key: 'c', jobId: 'job_3', at: AT },
    ]);
  });

  it('stays open where its answer does not have the documented shape', async () => {
    const { client, entries } = journaling(() => json({ success: true, data: {} }));
    expect(await rejection(client.videos.create(PROMPT))).toMatchObject({ name: 'ResponseError' });
    expect(entries).toHaveLength(1);
  });

  it.each<[string, () => Response, object | undefined]>([
    [
      'refused',
      () => json({ error: { code: 'invalid_request' } }, { status: 422 }),
      { reason: 'refused', code: 'invalid_request' },
    ],
    ['refused without a code', () => json({}, { status: 422 }), { reason: 'refused', code: 'http_422' }],
    ['refused before its key was looked at', () => json({}, { status: 401 }), { reason: 'unsent', code: 'http_401' }],
    [
      'refused while generation is paused',
      () => json({ code: 'dispatch_disabled' }, { status: 503 }),
      { reason: 'unsent', code: 'dispatch_disabled' },
    ],
    [
      'refused by a full rate limit',
      () => json({}, { status: 429, headers: { 'retry-after': '3600' } }),
      { reason: 'unsent', code: 'http_429' },
    ],
    [
      'refused for review',
      () => json({ code: 'character_pending' }, { status: 409 }),
      { reason: 'refused', code: 'character_pending' },
    ],
    ['lost', () => json({}, { status: 500 }), undefined],
  ])('that was %s is closed with the reason and the code, or stays open', async (_, step, closed) => {
    const { client, entries } = journaling(step);
    await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    expect(entries.slice(1)).toStrictEqual(closed ? [{ phase: 'closed', key: 'k', at: AT, ...closed }] : []);
  });

  it.each<[string, () => Promise<Response>, object | undefined]>([
    ['had no answer', () => Promise.reject(new TypeError('fetch failed')), undefined],
    [
      'never connected',
      () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
      { reason: 'unsent' },
    ],
  ])('that %s', async (_, step, closed) => {
    const { client, entries } = journaling(step);
    await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    expect(entries.slice(1)).toStrictEqual(closed ? [{ phase: 'closed', key: 'k', at: AT, ...closed }] : []);
  });

  it('that is aborted before it was sent is closed as unsent, without a code', async () => {
    const controller = new AbortController();
    const apiKey = () => {
      controller.abort('enough');
      return new Promise<string>(() => {});
    };
    const { client, entries, seen } = journaling(() => json(created()), { apiKey });
    expect(await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k', signal: controller.signal }))).toBe(
      'enough',
    );
    expect(entries.slice(1)).toStrictEqual([{ phase: 'closed', key: 'k', at: AT, reason: 'unsent' }]);
    expect(seen).toEqual([]);
  });

  it('that is aborted after it was sent stays open', async () => {
    const controller = new AbortController();
    const { client, entries } = journaling(() => {
      controller.abort('enough');
      return new Promise(() => {});
    });
    expect(await rejection(client.videos.create(PROMPT, { signal: controller.signal }))).toBe('enough');
    expect(entries).toHaveLength(1);
  });

  it('and nothing else is written: neither a read nor a raw request is a create', async () => {
    const { client, entries } = journaling(() => answer({ id: 'job_1', status: 'processing' }));
    await client.jobs.get('job_1');
    await client.request({ method: 'POST', path: '/v1/videos', body: PROMPT });
    await client.models.list();
    expect(entries).toEqual([]);
  });
});

describe('the end of a job', () => {
  it.each<[string, object, object]>([
    [
      'with its cost and its model',
      { status: 'completed', finalTokenCost: 3, modelId: 'svc-video-fast' },
      { status: 'completed', chargedTokens: 3, model: 'svc-video-fast' },
    ],
    ['without what the service does not say', { status: 'completed' }, { status: 'completed' }],
    [
      'of a failed job with its code',
      { status: 'failed', errorCode: 'generation_rejected' },
      { status: 'failed', chargedTokens: 0, errorCode: 'generation_rejected' },
    ],
    [
      'of a failed job that was charged',
      { status: 'failed', finalTokenCost: 2 },
      { status: 'failed', chargedTokens: 2 },
    ],
  ])('is written once, %s', async (_, job, end) => {
    const { client, entries } = journaling([() => json(created()), () => answer({ id: 'job_1', ...job })]);
    await client.videos.create(PROMPT, { idempotencyKey: 'k' });
    await client.jobs.get('job_1');
    await client.jobs.get('job_1');
    expect(entries.slice(2)).toStrictEqual([{ jobId: 'job_1', at: AT, key: 'k', phase: 'final', ...end }]);
  });

  it('that another process has created is written without a key', async () => {
    const { client, entries } = journaling(() => answer({ id: 'job_1', status: 'completed', finalTokenCost: 3 }));
    await client.jobs.get('job_1');
    expect(entries).toStrictEqual([{ jobId: 'job_1', at: AT, phase: 'final', status: 'completed', chargedTokens: 3 }]);
  });

  it('that cannot be written is a warning, and the read succeeds', async () => {
    const { client, warnings } = journaling(() => answer({ id: 'job_1', status: 'completed' }), {
      append: () => Promise.reject(new Error('disk full')),
    });
    expect((await client.jobs.get('job_1')).status).toBe('completed');
    expect(warnings).toEqual(['gen-client: The journal could not be written: disk full']);
  });

  it('is waited for no longer than two seconds', async () => {
    vi.useFakeTimers();
    const { client } = journaling(() => answer({ id: 'job_1', status: 'completed' }), {
      append: () => new Promise(() => {}),
    });
    const settled = vi.fn();
    const read = client.jobs.get('job_1').then(settled);
    await vi.advanceTimersByTimeAsync(1_900);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    await read;
    expect(settled).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves no timer where it is written at once', async () => {
    vi.useFakeTimers();
    const { client } = journaling(() => answer({ id: 'job_1', status: 'completed' }));
    await client.jobs.get('job_1');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a journal that cannot be written', () => {
  it.each<[string, () => unknown, string]>([
    ['rejects', () => Promise.reject(new Error('no space')), 'no space'],
    [
      'throws',
      () => {
        throw new Error('no space');
      },
      'no space',
    ],
  ])('and %s fails the create unsent, with its key and the cause', async (_, append, why) => {
    const { client, seen, entries } = journaling(() => json(created()), { append });
    const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    expect(error).toMatchObject({
      name: 'GenError',
      message: `The journal could not be written, so the create was not sent: ${why}`,
      recovery: 'fix_setup',
      idempotencyKey: 'k',
      cause: { message: 'no space' },
    });
    expect([seen, entries]).toEqual([[], []]);
  });

  it('passes on what its own error says to do', async () => {
    const append = () => Promise.reject(new GenError('the store is away', { recovery: 'retry' }));
    const { client } = journaling(() => json(created()), { append });
    expect(await rejection(client.videos.create(PROMPT))).toMatchObject({ recovery: 'retry' });
  });

  it('in time fails the create, which can be tried again, and closes the entry if it comes after all', async () => {
    vi.useFakeTimers();
    const writes: (() => void)[] = [];
    const append = (entry: JournalEntry) =>
      entry.phase === undefined ? new Promise<void>((resolve) => writes.push(resolve)) : undefined;
    const { client, seen, entries } = journaling(() => json(created()), { append, timeoutMs: 5_000 });
    const failed = rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    await vi.advanceTimersByTimeAsync(4_990);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(20);
    expect(await failed).toMatchObject({
      name: 'GenError',
      message: 'The journal could not be written, so the create was not sent: no answer within 5000 ms (timeoutMs)',
      recovery: 'retry',
      idempotencyKey: 'k',
    });
    expect([seen, entries, vi.getTimerCount()]).toEqual([[], [], 0]);
    writes[0]?.();
    await vi.advanceTimersByTimeAsync(1);
    expect(entries).toEqual([
      { key: 'k', call: 'videos', params: PROMPT, at: AT },
      { phase: 'closed', key: 'k', at: AT, reason: 'unsent' },
    ]);
  });

  it('before the caller aborts rejects with the reason of the abort, and leaves no timer', async () => {
    vi.useFakeTimers();
    const { client, seen } = journaling(() => json(created()), { append: () => new Promise(() => {}) });
    const controller = new AbortController();
    const ended = rejection(client.videos.create(PROMPT, { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(10);
    controller.abort('enough');
    expect(await ended).toBe('enough');
    expect([seen, vi.getTimerCount()]).toEqual([[], 0]);
  });
});
