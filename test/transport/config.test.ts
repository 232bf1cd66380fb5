// Options from the constructor and the environment. For base URLs, see test/field/calls/addresses.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenClient, GenError } from '../../src/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { BASE_URL, created, freshKey, json, stubbed } from './support.js';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

describe('an invalid option', () => {
  const INVALID: readonly [string, Record<string, unknown>][] = [
    ['apiKey', { apiKey: '' }],
    ['apiKey', { apiKey: 7 }],
    ['webhookSecret', { webhookSecret: ' ' }],
    ['webhookSecret', { webhookSecret: ['good', ''] }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: '5' }],
    ['maxRetries', { maxRetries: -1 }],
    ['maxRetries', { maxRetries: 1.5 }],
    ['maxRetryAfterMs', { maxRetryAfterMs: Number.NaN }],
    ['headers', { headers: { 'bad name': 'x' } }],
    ['headers', { headers: { good: 'line\nbreak' } }],
    ['headers', { headers: { authorization: 'Bearer x' } }],
    ['headers', { headers: { 'Idempotency-Key': 'x' } }],
    ['fetch', { fetch: 'fetch' }],
    ['preflight', { preflight: 'no' }],
    ['rateLimit', { rateLimit: 'none' }],
    ['logger', { logger: { info: () => {} } }],
    ['logLevel', { logLevel: 'loud' }],
    ['hooks', { hooks: 5 }],
  ];

  it.each(INVALID)('%s throws a GenError that starts with its name: %j', (name, options) => {
    const createClient = () => new GenClient({ apiKey: 'k', baseUrl: BASE_URL, ...options } as ClientOptions);
    expect(createClient).toThrow(GenError);
    expect(createClient).toThrow(new RegExp(`^${name}\\b`));
  });

  it.each<[string, object]>([
    ["limits['jobs.get'].windowMs must be a number of milliseconds above 0, not undefined.", { limit: 5 }],
    ["limits['jobs.get'].windowMs must be a number of milliseconds above 0, not 0.", { limit: 5, windowMs: 0 }],
    [
      "limits['jobs.get'].limit must be a whole number of at least 1, or Infinity, not 1.5.",
      { limit: 1.5, windowMs: 5 },
    ],
    ["limits['jobs.get'].limit must be a whole number of at least 1, or Infinity, not 0.", { limit: 0, windowMs: 5 }],
    [`GenClient has no option "limits['jobs.get'].window". Did you mean "limits['jobs.get'].windowMs"?`, { window: 5 }],
  ])('in a limit throws: %s', (message, limit) => {
    const limits = { 'jobs.get': limit } as unknown as ClientOptions['limits'];
    expect(() => new GenClient({ limits })).toThrow(new GenError(message));
  });

  it('that names an unknown limit throws with the similar name', () => {
    const limits = { 'video.create': { limit: 5, windowMs: 5 } } as ClientOptions['limits'];
    expect(() => new GenClient({ limits })).toThrow(
      `GenClient has no option "limits['video.create']". Did you mean "limits['videos.create']"?`,
    );
  });

  it.each([
    ['timeoutMs', { timeoutMs: -1 }],
    ['maxRetries', { maxRetries: Number.NaN }],
    ['headers', { headers: { authorization: 'x' } }],
  ])('of a call, %s, rejects the call before it is sent: %j', async (name, options) => {
    const { client, requests } = stubbed(() => json(created()));
    await expect(client.videos.create({ prompt: 'x' }, options)).rejects.toThrow(new RegExp(`^${name}\\b`));
    expect(requests).toHaveLength(0);
  });
});

describe('the environment', () => {
  it('enables console logging with GEN_LOG, and reports an invalid level', async () => {
    vi.useFakeTimers();
    const info = vi.spyOn(globalThis.console, 'info').mockImplementation(() => {});
    const responses = [() => json({}, { status: 500 }), () => json(created())];
    await advanceUntil(stubbed(responses).client.images.create({ prompt: 'x' }));
    expect(info).not.toHaveBeenCalled();
    vi.stubEnv('GEN_LOG', 'info');
    await advanceUntil(stubbed(responses).client.images.create({ prompt: 'x' }));
    expect(info).toHaveBeenCalledTimes(1);
    vi.stubEnv('GEN_LOG', 'everything');
    const call = stubbed(responses).client.images.create({ prompt: 'x' });
    await expect(call).rejects.toThrow(/^GEN_LOG must be one of "off", "error"/);
  });

  it("isn't required: clients work without process, or if the runtime denies access", () => {
    vi.stubGlobal('process', undefined);
    expect(() => new GenClient({ baseUrl: BASE_URL })).not.toThrow();
    const forbidden = Object.defineProperty({}, 'env', {
      get: () => {
        throw new Error('denied');
      },
    });
    vi.stubGlobal('process', forbidden);
    expect(() => new GenClient({ baseUrl: BASE_URL })).not.toThrow();
  });
});

describe('a client in a browser page', () => {
  it('throws unless allowed, and never sets User-Agent', async () => {
    vi.stubGlobal('window', {});
    vi.stubGlobal('document', {});
    expect(() => new GenClient({ apiKey: 'k', baseUrl: BASE_URL })).toThrow(/dangerouslyAllowBrowser: true/);
    const { client, requests } = stubbed(() => json(created()), { dangerouslyAllowBrowser: true });
    await client.jobs.get('job_1');
    expect(requests[0]?.headers).not.toHaveProperty('user-agent');
  });
});

describe('withOptions', () => {
  it('changes the passed options, and keeps the rest and the state of the limits', async () => {
    const apiKey = freshKey();
    const { client, requests } = stubbed(() => json(created()), { apiKey, headers: { 'x-a': '1' } });
    const other = client.withOptions({ headers: { 'x-b': '2' } });
    await client.videos.create({ prompt: 'x' });
    await other.videos.create({ prompt: 'x' });
    expect(requests[1]?.headers).toMatchObject({ 'x-b': '2', authorization: `Bearer ${apiKey}` });
    expect(requests[1]?.headers).not.toHaveProperty('x-a');
    expect(other.limits()['videos.create']?.free).toBe(18);
  });
});

describe('client.request', () => {
  it.each([
    'v1/x',
    '//evil.test/x',
    '/\\evil.test',
    'https://evil.test',
    '/v1/../../x',
    '/v1/%2e%2E/x',
    '/v1/./x',
    '/v1/a b',
    '',
  ])('rejects the path %j', async (path) => {
    const { client } = stubbed(() => json({}));
    await expect(client.request({ method: 'GET', path })).rejects.toThrow(/^request: path must start with one "\/"/);
  });

  it.each(['TRACE', 'get', '', 7])('rejects the method %j, and lists the valid methods', async (method) => {
    const { client } = stubbed(() => json({}));
    const call = (async () => client.request({ method, path: '/v1/x' } as never))();
    await expect(call).rejects.toThrow(/^request: method must be one of .*GET.*POST.*DELETE.*PUT.*PATCH/);
  });
});
