// A call's API key: its source, format, and encryption. For its redaction, see secrets.test.ts.
import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenClient, GenError } from '../../src/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { BASE_URL, created, freshKey, json, PROMPT, rejection, stubbed } from './support.js';

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

  it.each(FAILING)('that %s with a GenError fails the call with that error', async (_, failing) => {
    const error = new GenError('the vault is sealed');
    const { client } = stubbed(() => json(created()), { apiKey: failing(error) });
    expect(await rejection(client.videos.create(PROMPT))).toBe(error);
  });

  it.each(FAILING)(
    'that %s rejects the unsent call with a ConnectionError, and is called again for each retry',
    async (_, failing) => {
      const cause = new Error('the vault is sealed');
      const clock = virtualClock();
      const apiKey = vi.fn(failing(cause));
      const options = { apiKey, maxRetries: 2, [Symbol.for('gen-client.clock')]: clock };
      const { client, requests } = stubbed(() => json(created()), options);
      expect(await clock.until(rejection(client.videos.create(PROMPT)))).toMatchObject({
        name: 'ConnectionError',
        message: 'apiKey failed: the vault is sealed',
        method: 'POST',
        url: `${BASE_URL}/v1/videos`,
        attempts: 0,
        cause,
      });
      expect(apiKey.mock.calls.length).toBeGreaterThanOrEqual(3);
      expect(requests).toEqual([]);
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

  it('is called for each attempt, so a rotated key is used', async () => {
    vi.useFakeTimers();
    const keys = [freshKey(), freshKey()];
    let calls = 0;
    const apiKey = async () => keys[calls++] ?? '';
    const { client, requests } = stubbed([() => json({}, { status: 500 }), () => json(created())], { apiKey });
    await advanceUntil(client.videos.create(PROMPT));
    vi.useRealTimers();
    expect(requests.map((request) => request.headers.authorization)).toEqual(keys.map((key) => `Bearer ${key}`));
    expect(calls).toBe(2);
  });
});

describe('an API key', () => {
  it('can have surrounding whitespace, as in a key file', async () => {
    const key = freshKey();
    for (const apiKey of [`${key}\n`, () => ` ${key}\r\n`]) {
      const { client, requests } = stubbed(() => json(created()), { apiKey });
      await client.images.create(PROMPT);
      expect(requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
    }
  });

  it('is rejected without being shown if it is invalid', async () => {
    expect(() => new GenClient({ apiKey: 'sk-\nhidden', baseUrl: BASE_URL })).toThrow(
      /^apiKey contains whitespace or non-ASCII characters\. If it starts with "Bearer "/,
    );
    const { client, requests } = stubbed(() => json(created()), { apiKey: () => 'sk-\u0000hidden' });
    const error = (await rejection(client.images.create(PROMPT))) as Error;
    expect(error.message).toMatch(/^apiKey/);
    expect(inspect(error)).not.toContain('hidden');
    expect(requests).toEqual([]);
  });
});

describe('sending an API key', () => {
  const warningsOf = async (baseUrl: string, options: ClientOptions = {}, calls = 1) => {
    const warn = vi.fn<(message: string) => void>();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { client } = stubbed(() => json(created()), { baseUrl, logger, ...options });
    for (let call = 0; call < calls; call++) await client.jobs.get('job_1');
    return warn.mock.calls.map(([message]) => message);
  };

  it('without encryption causes one warning with the origin and without the key', async () => {
    const apiKey = freshKey();
    const warnings = await warningsOf('http://gen.internal:8080/prefix', { apiKey }, 3);
    expect(warnings).toEqual([
      'gen-client: The API key is sent to http://gen.internal:8080 without encryption. Use an https:// baseUrl.',
    ]);
    expect(await warningsOf('http://10.0.0.7', { apiKey: () => apiKey })).toHaveLength(1);
  });

  it.each([
    [0, 'https://host'],
    [0, 'http://localhost:4010'],
    [0, 'http://api.localhost'],
    [0, 'http://127.0.0.1:4010'],
    [0, 'http://127.1.2.3'],
    [0, 'http://[::1]:4010'],
    [0, 'https://127.0.0.1.evil.test'],
    [1, 'http://10.127.0.1'],
    [1, 'http://notlocalhost'],
    [1, 'http://localhost.evil.test'],
    [1, 'http://[::2]'],
  ])('causes %i warnings about encryption for %s', async (count, baseUrl) =>
    expect(await warningsOf(baseUrl)).toHaveLength(count),
  );
});
