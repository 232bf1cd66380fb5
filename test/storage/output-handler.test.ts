import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createOutputHandler } from '../../src/adapters/storage/index.js';
import type { OutputHandlerOptions } from '../../src/adapters/storage/output-handler.js';
import { LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie, openPerTest, quickPauses } from '../files/support.js';

quickPauses();

const MOVIE = createMovie(600_000);

const service = openPerTest(new LoopbackService());
beforeEach(() => void service.addOutput('job_1', { body: MOVIE }));

type Options = Partial<OutputHandlerOptions>;
const serve = (options: Options = {}, path = '/files/job_1', init?: RequestInit) =>
  createOutputHandler({ client: createClient(service), authorize: () => true, ...options })(
    new Request(`https://app.test${path}`, init),
  );
const range = (text: string, headers: Record<string, string> = {}) => ({ headers: { range: text, ...headers } });
const outputRequests = () => service.requests.filter(({ path }) => /output/.test(path));

describe('the file', () => {
  it('is complete, inline, and private, and has its length', async () => {
    const response = await serve();
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toEqual({
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-cache',
      'content-disposition': 'inline; filename="job_1.mp4"',
      'content-length': `${MOVIE.length}`,
      'content-security-policy': 'sandbox allow-same-origin',
      'content-type': 'video/mp4',
      etag: service.outputs.get('job_1')?.etag,
      'x-content-type-options': 'nosniff',
    });
    expect(await response.bytes()).toEqual(MOVIE);
  });

  it('is described by HEAD without its bytes', async () => {
    const response = await serve({}, undefined, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length')]).toEqual([200, `${MOVIE.length}`]);
    expect(response.body).toBeNull();
    expect(outputRequests().map(({ method }) => method)).toEqual(['HEAD']);
  });

  it('recovers from an interruption', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [100_000, 100_000] });
    expect(await (await serve()).bytes()).toEqual(MOVIE);
    service.addOutput('job_1', { body: MOVIE, cutAfter: [50_000] });
    expect(await (await serve({}, undefined, range('bytes=1000-199999'))).bytes()).toEqual(MOVIE.slice(1_000, 200_000));
  });
});

it("the file is named after its job's sanitized ID, and is an attachment with ?download", async () => {
  const source = () => ({ get: async () => new Response('x', { headers: { 'content-type': 'video/mp4' } }) });
  const disposition = async (path: string) => (await serve({ source }, path)).headers.get('content-disposition');
  expect(await disposition('/files/job_1?download')).toBe('attachment; filename="job_1.mp4"');
  expect(await disposition('/files?job=job_%C3%9C%22a')).toBe('inline; filename="job___a.mp4"');
});

describe('the content type', () => {
  const sourceOf = (contentType: string) => () => ({
    get: async () => new Response('x', { headers: { 'content-type': contentType } }),
  });

  it.each([
    ['image/png;,text/html', 'image/png'],
    ['video/mp4;a=b, text/html;c', 'video/mp4'],
    ['video/mp4; codecs="avc1.64001f, mp4a.40.2"', 'video/mp4; codecs="avc1.64001f, mp4a.40.2"'],
    ['video/webm;codecs=vp9;x=<script>', 'video/webm; codecs="vp9"'],
    ['video/mp4; codecs="avc1, text/html"', 'video/mp4'],
    ['video/mp4; codecs=a; codecs=b', 'video/mp4'],
    ['image/svg+xml', 'application/octet-stream'],
    ['Video/MP4; charset=utf-7', 'video/mp4'],
    ['video/mp4, text/html', 'application/octet-stream'],
    ['video/x-unknown', 'application/octet-stream'],
    ['application/json', 'application/octet-stream'],
  ])('%s is sent as %s', async (contentType, servedType) => {
    const { headers } = await serve({ source: sourceOf(contentType) });
    expect(headers.get('content-type')).toBe(servedType);
    expect(headers.get('content-security-policy')).toBe('sandbox allow-same-origin');
    const kind = servedType === 'application/octet-stream' ? /^attachment/ : /^inline/;
    expect(headers.get('content-disposition')).toMatch(kind);
  });
});

describe("a request's job", () => {
  const authorizedIds = async (path: string, options: Options = {}) => {
    const ids: string[] = [];
    await serve({ authorize: (_, jobId) => ids.push(jobId) < 0, ...options }, path);
    return ids;
  };

  it.each([
    ['/api/videos/job_1/file', 'job_1'],
    ['/files/job_1.mp4', 'job_1'],
    ['/job_0/files/job_1/', 'job_1'],
    ['/files/abc.mp4', 'abc.mp4'],
    ['/job_1/file?job=job_2', 'job_2'],
    ['/files/job_%E0%A4%A/x', 'x'],
  ])('is parsed from the path %s: %s', async (path, id) => {
    expect(await authorizedIds(path)).toEqual([id]);
  });

  it('is the result of jobId, for authorization and the response', async () => {
    const checkedIds: string[] = [];
    const jobId = (request: Request) => new URL(request.url).searchParams.get('v') ?? '';
    const authorize = (_: Request, id: string) => checkedIds.push(id) > 0;
    expect((await serve({ jobId, authorize }, '/files/job_9/file?v=job_1&job=job_8')).status).toBe(200);
    expect(checkedIds).toEqual(['job_1']);
    expect(outputRequests().map(({ path }) => path)).toEqual(['/v1/jobs/job_1/output']);
  });

  it.each(['', '..', 'a\0b', undefined])('is never an invalid ID from jobId: %j', async (id) => {
    expect(await authorizedIds('/files/job_1', { jobId: (() => id) as never })).toEqual([]);
  });

  it('is in the 404 during development, but not in production', async () => {
    const text = async () => (await serve({ authorize: () => false }, '/videos/abc/file')).text();
    vi.stubEnv('NODE_ENV', 'development');
    const fix = 'Pass jobId to createOutputHandler to change it.';
    expect(await text()).toBe(`Not found. The requested ID is "file". ${fix}`);
    expect(await (await serve({}, '/files/%E0%A4%A')).text()).toBe(`Not found. The request contains no job ID. ${fix}`);
    vi.stubEnv('NODE_ENV', 'production');
    expect(await text()).toBe('Not found.');
    vi.unstubAllEnvs();
  });
});

describe('a response other than the complete file', () => {
  const ENCODED = { 'content-encoding': 'gzip', 'content-type': 'video/mp4', 'content-length': '41', etag: '"1"' };

  it.each(['GET', 'HEAD'])('has no length and no ranges if it is encoded: %s', async (method) => {
    const get = async () => new Response(MOVIE, { headers: { ...ENCODED, 'accept-ranges': 'bytes' } });
    const response = await serve({ source: () => ({ get }) }, undefined, { method });
    expect(response.status).toBe(200);
    for (const name of ['content-length', 'accept-ranges', 'content-range', 'content-encoding'])
      expect(response.headers.has(name)).toBe(false);
    if (method === 'GET') expect(await response.bytes()).toEqual(MOVIE);
  });

  it('is never served as the entire file if it has an unrequested range', async () => {
    const headers = { 'content-type': 'video/mp4', 'content-range': 'bytes 0-9/600000', 'content-length': '10' };
    const partialResponse = () => new Response(MOVIE.slice(0, 10), { status: 206, headers });
    const onError = vi.fn();
    const response = await serve({ source: () => ({ get: async () => partialResponse() }), onError });
    expect(await response.bytes()).toEqual(MOVIE);
    expect(onError).toHaveBeenCalledOnce();
    const client = createClient(service, { fetch: async () => partialResponse() });
    expect((await serve({ client })).status).toBe(502);
  });
});

describe('authorization', () => {
  it.each(['?job=job_1&job=job_2', '?job=', '?job=..', '/%E0%A4%A', '/a%00b'])(
    'rejects an ambiguous ID, as in %s',
    async (path) => {
      const authorize = vi.fn(() => true);
      expect((await serve({ authorize }, path.startsWith('?') ? `/files${path}` : path)).status).toBe(404);
      expect(authorize).not.toHaveBeenCalled();
    },
  );

  it.each([false, undefined, { id: 'user' }, new Response('no')])('treats %s as false', async (response) => {
    const rejected = await serve({ authorize: (() => response) as never }, '/files/job_9');
    const unknown = await serve({}, '/files/job_9');
    expect([rejected.status, unknown.status]).toEqual([404, 404]);
    expect(await rejected.text()).toBe(await unknown.text());
    expect([...rejected.headers]).toEqual([...unknown.headers]);
    expect(outputRequests().map(({ path }) => path)).toEqual(['/v1/jobs/job_9/output']);
  });

  it('that throws causes a 500, and the error is reported to onError', async () => {
    const onError = vi.fn();
    const error = Object.assign(new Error('db down'), { status: 404 });
    const authorize = () => Promise.reject(error);
    expect((await serve({ authorize, onError })).status).toBe(500);
    expect(onError).toHaveBeenCalledExactlyOnceWith(error, expect.any(Request));
    expect(outputRequests()).toEqual([]);
    const throwingOnError = () => {
      throw new Error('a bug in onError');
    };
    expect((await serve({ authorize, onError: throwingOnError })).status).toBe(500);
    expect((await serve({ authorize })).status).toBe(500);
  });

  it.each<[object, string]>([
    [{ authorize: undefined }, 'authorize is missing'],
    [{ authorise: () => true }, 'Did you mean "authorize"?'],
    [{ client: {} }, 'must be a GenClient'],
  ])('is validated with the other options: %o', (options, message) => {
    const allOptions = { client: createClient(service), authorize: () => true, ...options };
    expect(() => createOutputHandler(allOptions as never)).toThrow(message);
  });
});

it("forwards only the page's range, and sends the client's headers", async () => {
  const pageHeaders = { cookie: 'session=1', 'x-forwarded-for': '1.2.3.4', 'if-none-match': '"x"' };
  const headers = { 'if-range': '"x"', authorization: 'Bearer page', ...pageHeaders };
  const response = await serve({}, undefined, range('bytes=0-9', headers));
  const [request] = outputRequests();
  const forwarded = { range: 'bytes=0-9', 'if-range': '"x"', authorization: 'Bearer key-for-tests' };
  expect(request?.headers).toMatchObject(forwarded);
  for (const name of Object.keys(pageHeaders)) expect(request?.headers).not.toHaveProperty(name);
  expect(JSON.stringify([...response.headers])).not.toContain('key-for-tests');
});

describe("a file that can't be served", () => {
  const reject = (status: number, code: string) => ({
    body: MOVIE,
    rejection: { status, body: { error: { code, message: 'No.' } } },
  });

  it('of an unfinished job causes a 409', async () => {
    service.jobs.set('job_2', { id: 'job_2', status: 'processing' });
    service.addOutput('job_3', reject(409, 'output_not_ready'));
    expect((await serve({}, '/files/job_2')).status).toBe(404); // The service reports an unknown job.
    expect((await serve({}, '/files/job_3')).status).toBe(409);
    service.addOutput('job_2', reject(404, 'output_not_found'));
    service.jobs.set('job_2', { id: 'job_2', status: 'processing' });
    expect((await serve({}, '/files/job_2')).status).toBe(409);
  });

  it('causes a 404 if its job failed, and a 410 if its link expired', async () => {
    service.addOutput('job_2', reject(404, 'output_not_found'));
    service.jobs.set('job_2', { id: 'job_2', status: 'failed' });
    service.addOutput('job_3', reject(410, 'output_expired'));
    expect((await serve({}, '/files/job_2')).status).toBe(404);
    expect((await serve({}, '/files/job_3')).status).toBe(410);
  });

  it.each([
    [401, 'invalid_api_key', 502],
    [403, 'scope_missing', 502],
    [500, 'internal_error', 502],
  ])(
    'rejected by the service with %i %s causes a %i, and the error is reported to onError',
    async (status, code, expected) => {
      service.addOutput('job_1', reject(status, code));
      const onError = vi.fn();
      const response = await serve({ client: createClient(service, { maxRetries: 0 }), onError });
      expect(response.status).toBe(expected);
      expect(onError).toHaveBeenCalledOnce();
      expect(await response.text()).not.toContain('key');
    },
  );

  it('causes a 503 with Retry-After if the service is busy', async () => {
    service.addOutput('job_1', reject(429, 'rate_limited'));
    const response = await serve({ client: createClient(service, { rateLimit: 'throw', maxRetries: 0 }) });
    expect([response.status, response.headers.has('retry-after')]).toEqual([503, true]);
  });

  it('is neither served nor reported after the page disconnects', async () => {
    const controller = new AbortController();
    const onError = vi.fn();
    const authorize = () => {
      controller.abort();
      throw new Error('aborted');
    };
    const handler = createOutputHandler({ client: createClient(service), authorize, onError });
    const response = await handler(new Request('https://app.test/files/job_1', { signal: controller.signal }));
    expect([response.status, onError.mock.calls]).toEqual([499, []]);
  });
});

describe('a copy as the source', () => {
  afterEach(() => void vi.useRealTimers());

  it("is served instead of the service's file", async () => {
    const gets: object[] = [];
    const source = (jobId: string) => ({
      get: async (options: object) => {
        gets.push({ jobId, ...options });
        return new Response('copy', { headers: { 'content-type': 'video/mp4' } });
      },
    });
    expect(await (await serve({ source }, undefined, range('bytes=0-9', { 'if-range': '"1"' }))).text()).toBe('copy');
    expect(gets).toEqual([
      { jobId: 'job_1', method: 'GET', range: 'bytes=0-9', ifRange: '"1"', signal: expect.any(AbortSignal) },
    ]);
    await serve({ source }, undefined, { method: 'HEAD', headers: { range: 'bytes=0-9', 'if-range': '"1"' } });
    expect(gets[1]).toMatchObject({ method: 'HEAD', range: undefined, ifRange: undefined });
    expect(service.requests).toEqual([]);
  });

  it.each<[string, OutputHandlerOptions['source'], number]>([
    ["that doesn't exist yet", () => undefined, 0],
    ["that the store doesn't contain", () => ({ get: async () => undefined }), 0],
    ['that has status 404', () => ({ get: async () => new Response(null, { status: 404 }) }), 0],
    ['that fails', () => ({ get: () => Promise.reject(new Error('connection lost')) }), 1],
    ['that has status 403', () => ({ get: async () => new Response('no', { status: 403 }) }), 1],
  ])("%s falls back to the service's file", async (_, source, reported) => {
    const onError = vi.fn();
    expect(await (await serve({ source, onError })).bytes()).toEqual(MOVIE);
    expect(onError).toHaveBeenCalledTimes(reported);
  });

  it("that doesn't respond for ten seconds is canceled and falls back to the service's file", async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const onError = vi.fn();
    let signal: AbortSignal | undefined;
    const get = (options: { signal?: AbortSignal | undefined }) => {
      signal = options.signal;
      return new Promise<never>(() => {});
    };
    const response = serve({ source: () => ({ get }), onError });
    await vi.advanceTimersByTimeAsync(9_900);
    expect(signal?.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(signal?.aborted).toBe(true);
    vi.useRealTimers();
    expect(await (await response).bytes()).toEqual(MOVIE);
    expect(onError).toHaveBeenCalledOnce();
  });

  it('can send its bytes slowly', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const stream = new TransformStream<Uint8Array, Uint8Array>();
    const get = async () => new Response(stream.readable, { headers: { 'content-type': 'video/mp4' } });
    const response = await serve({ source: () => ({ get }) });
    await vi.advanceTimersByTimeAsync(60_000);
    const writer = stream.writable.getWriter();
    void writer.write(new Uint8Array(5)).then(() => writer.close());
    expect(await response.bytes()).toHaveLength(5);
  });
});
