// A call's API key: its source, errors without it, and where it must not appear.
import { inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenClient, GenError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { BASE_URL, created, freshKey, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe('a key function', () => {
  const FAILING: [string, (error: Error) => () => Promise<string>][] = [
    [
      'throws',
      (error) => () => {
        throw error;
      },
    ],
    ['rejects', (error) => () => Promise.reject(error)],
  ];

  it.each(FAILING)('that %s with a GenError fails the call with that error', async (_, make) => {
    const own = new GenError('the vault is sealed');
    const { client } = stubbed(() => json(created()), { apiKey: make(own) });
    expect(await rejection(client.videos.create(PROMPT))).toBe(own);
  });

  it.each(FAILING)(
    'that %s rejects the call, unsent, with a ConnectionError, and is called again for each retry',
    async (_, make) => {
      const cause = new Error('the vault is sealed');
      const clock = virtualClock();
      const apiKey = vi.fn(make(cause));
      const { client, seen } = stubbed(() => json(created()), {
        apiKey,
        maxRetries: 2,
        [Symbol.for('gen-client.clock')]: clock,
      });
      expect(await clock.until(rejection(client.videos.create(PROMPT)))).toMatchObject({
        name: 'ConnectionError',
        message: 'apiKey failed: the vault is sealed',
        method: 'POST',
        url: `${BASE_URL}/v1/videos`,
        attempts: 0,
        cause,
      });
      expect(apiKey.mock.calls.length).toBeGreaterThanOrEqual(3);
      expect(seen).toEqual([]);
    },
  );

  it('is called once for a wait before the account is known, and then for each poll', async () => {
    const key = freshKey();
    const apiKey = vi.fn(async () => key);
    const job = { id: 'job_1', status: 'completed', providerOutputUrl: 'https://service.test/o' };
    const { client } = stubbed(() => json({ success: true, data: { job } }), { apiKey });
    await client.waitForJob('job_1');
    expect(apiKey).toHaveBeenCalledTimes(2);
  });
});

describe('the key in errors', () => {
  const apiKey = 'sk-"quoted"-key';
  /** Formats an error as fully as a log or debugger could. */
  const inspectFully = (error: unknown) => inspect(error, { depth: 20, showHidden: true, getters: true });
  const rejected = async (body: unknown, init: ResponseInit = {}, options: ClientOptions = {}) => {
    const { client } = stubbed(() => json(body, { status: 400, ...init }), { apiKey, maxRetries: 0, ...options });
    return rejection(client.videos.create(PROMPT));
  };

  it('is removed from the message and from every string and name in the body and headers', async () => {
    const error = await rejected(
      {
        error: { code: 'bad_ratio', message: `${apiKey} may not.` },
        data: {
          list: [`Bearer ${apiKey}`, 7, null, true],
          [`of ${apiKey}`]: { deep: apiKey },
          top_up_url: `https://pay.test/${apiKey}`,
        },
        request_id: `req ${apiKey}`,
      },
      { headers: { 'x-echo': `Bearer ${apiKey}`, 'x-more': 'y' } },
    );
    expect(error).toMatchObject({
      code: 'bad_ratio',
      message: '[redacted] may not.',
      data: {
        list: ['Bearer [redacted]', 7, null, true],
        'of [redacted]': { deep: '[redacted]' },
        top_up_url: 'https://pay.test/[redacted]',
      },
      requestId: 'req [redacted]',
    });
    expect((error as { headers: Headers }).headers.get('x-echo')).toBe('Bearer [redacted]');
    expect((error as { headers: Headers }).headers.get('x-more')).toBe('y');
    expect(inspectFully(error)).not.toContain(apiKey);
  });

  it("is removed from text that isn't JSON, and in its JSON form", async () => {
    const error = await rejected(`upstream got ${JSON.stringify({ key: apiKey })} and ${apiKey}`);
    expect(error).toMatchObject({ data: 'upstream got {"key":"[redacted]"} and [redacted]' });
    expect((error as Error).message).not.toContain('quoted');
  });

  it("isn't treated as a code if it is echoed as one", async () => {
    const key = 'sk-looks-like-a-code';
    expect(await rejected({ error: key }, {}, { apiKey: key })).toMatchObject({ code: 'http_400' });
    expect(await rejected({ code: `of-${key}` }, {}, { apiKey: key })).toMatchObject({ code: 'http_400' });
    // A documented code stays intact even if it contains the key.
    expect(await rejected({ code: 'prompt_too_long' }, {}, { apiKey: 'prompt_too' })).toMatchObject({
      code: 'prompt_too_long',
    });
  });

  it("isn't removed if it is too short to be a key, because such words occur in other text", async () => {
    const errorWith = (key: string) => rejected({ message: `The ${key} is odd.` }, {}, { apiKey: key });
    expect(await errorWith('quality')).toMatchObject({ message: 'The quality is odd.' });
    expect(await errorWith('qualitys')).toMatchObject({ message: 'The [redacted] is odd.' });
  });
});

describe('a runtime without diagnostics channels', () => {
  it('supports creates, waits, stores, and hooks', async () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined);
    const phases: string[] = [];
    const sandbox = createSandbox();
    const client = sandbox.client({ hooks: { onJob: ({ phase }) => void phases.push(phase) } });
    const job = await client.videos.createAndWait(PROMPT);
    expect(job.status).toBe('completed');
    expect(phases).toEqual(['accepted', 'final']);
    const silent = sandbox.client();
    expect((await silent.images.createAndWait(PROMPT)).status).toBe('completed');
    expect(new GenClient({ baseUrl: BASE_URL, apiKey: freshKey() }).limits()).toBeDefined();
  });
});
