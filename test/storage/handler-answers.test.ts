// What a handler asks the service and the copy of a file, and what it answers, without a connection.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createOutputHandler, type OutputSource, r2 } from '../../src/adapters/storage/index.js';
import type { OutputHandlerOptions } from '../../src/adapters/storage/output-handler.js';
import { fileResponse } from '../../src/adapters/storage/output-response.js';
import { APIError, RateLimitError } from '../../src/errors/index.js';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const VIDEO = { 'content-type': 'video/mp4' };
const details = { recovery: 'retry', method: 'GET', url: 'https://a.test' } as const;
/** A body, and who hears that it is let go of. */
function watched(init: ResponseInit = {}) {
  const cancel = vi.fn();
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => controller.enqueue(new Uint8Array(5));
  return { response: new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }), init), cancel };
}

/** A handler over a service with one file. */
function start(options: Partial<OutputHandlerOptions> = {}) {
  const get = vi.fn(async (id: string, ..._: unknown[]) => ({ id, status: 'processing' }));
  const output = vi.fn(async (..._: unknown[]) => new Response('12345', { headers: VIDEO }));
  const outputInfo = vi.fn(async (..._: unknown[]): Promise<object> => ({ acceptsRanges: false }));
  const authorize = vi.fn((_: Request, _jobId: string) => true);
  const onError = vi.fn();
  const client = { jobs: { get, output, outputInfo } } as never;
  const handler = createOutputHandler({ client, authorize, onError, ...options });
  const ask = (init: RequestInit = {}, path = '/files/job_1') => handler(new Request(`https://app.test${path}`, init));
  return { get, output, outputInfo, authorize, onError, ask };
}

describe('the service is asked', () => {
  const signal = expect.any(AbortSignal);
  it.each<[Record<string, string>, object]>([
    [{}, {}],
    [{ range: 'bytes=0-9' }, { range: 'bytes=0-9' }],
    [
      { range: 'bytes=0-9', 'if-range': '"1"' },
      { range: 'bytes=0-9', ifRange: '"1"' },
    ],
    [{ 'if-range': '"1"' }, {}],
    [{ range: 'lines=1-2', 'if-range': '"1"' }, {}],
  ])('for a page that sends %j with %j', async (headers, conditions) => {
    const { ask, output } = start();
    await ask({ headers });
    expect(output.mock.calls).toStrictEqual([['job_1', { signal, resume: true, ...conditions }]]);
  });

  it.each<[object, Record<string, string>]>([
    [
      {
        ...{ contentType: 'video/mp4', sizeBytes: 7, etag: '"1"', acceptsRanges: true },
        lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT',
      },
      {
        'accept-ranges': 'bytes',
        'content-length': '7',
        'content-type': 'video/mp4',
        'content-disposition': 'inline; filename="job_1.mp4"',
        etag: '"1"',
        'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
      },
    ],
    [
      { acceptsRanges: false },
      { 'content-disposition': 'attachment; filename="job_1"', 'content-type': 'application/octet-stream' },
    ],
  ])('for a HEAD about the file: %j', async (info, headers) => {
    const { ask, output, outputInfo } = start();
    outputInfo.mockResolvedValue(info);
    const answer = await ask({ method: 'HEAD', headers: { range: 'bytes=0-1' } });
    expect([answer.status, answer.body, Object.fromEntries(answer.headers)]).toEqual([
      200,
      null,
      {
        'cache-control': 'private, no-cache',
        'content-security-policy': 'sandbox',
        'x-content-type-options': 'nosniff',
        ...headers,
      },
    ]);
    expect([outputInfo.mock.calls, output.mock.calls]).toEqual([[['job_1', { signal }]], []]);
  });

  it('about the job where its refusal does not say why there is no file, and only then', async () => {
    const refused = (status: number, code: 'http_400' | 'job_not_found') =>
      new APIError('No.', { status, code, ...details });
    const open = start();
    open.output.mockRejectedValue(refused(404, 'http_400'));
    expect((await open.ask()).status).toBe(409);
    expect([open.get.mock.calls, open.onError.mock.calls]).toEqual([[['job_1', { signal }]], []]);
    const told = start();
    told.output.mockRejectedValue(refused(409, 'http_400'));
    expect((await told.ask()).status).toBe(409);
    expect(told.get).not.toHaveBeenCalled();
  });
});

describe('the answer', () => {
  it('has the Cache-Control that was given', async () => {
    const { headers } = await start({ cacheControl: 'public, max-age=60' }).ask();
    expect(headers.get('cache-control')).toBe('public, max-age=60');
  });

  it.each([
    [{ 'content-range': 'bytes */9' }, 'bytes */9'],
    [{}, 'bytes */*'],
  ])('to a range that is not there is 416 with %j as %s', async (headers, range) => {
    const source = () => ({ get: async () => new Response(null, { status: 416, headers }) });
    const copy = await start({ source }).ask({ headers: { range: 'bytes=10-' } });
    const { ask, output } = start();
    output.mockRejectedValue(
      new APIError('No.', { status: 416, code: 'http_400', headers: new Headers(headers), ...details }),
    );
    const own = await ask({ headers: { range: 'bytes=10-' } });
    for (const answer of [copy, own]) {
      expect([answer.status, answer.headers.get('content-range'), await answer.text()]).toEqual([
        416,
        range,
        'Range not satisfiable.',
      ]);
    }
  });

  it.each([
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
  ])(
    'of a busy service for %i ms asks to come back after %s s, and onError is called',
    async (retryAfterMs, seconds) => {
      const { ask, output, onError } = start();
      const busy = new RateLimitError('Full.', { status: 429, code: 'rate_limited', retryAfterMs, ...details });
      output.mockRejectedValue(busy);
      const answer = await ask();
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, seconds]);
      expect(onError).toHaveBeenCalledExactlyOnceWith(busy, expect.any(Request));
    },
  );

  it('of a failure that passes no time asks for no pause', async () => {
    const { ask, output } = start();
    output.mockRejectedValue(new Error('away'));
    const answer = await ask();
    expect([answer.status, answer.headers.has('retry-after')]).toEqual([500, false]);
  });

  it('to a page that has gone away is 499, and nobody is told', async () => {
    const { ask, output, onError } = start();
    const controller = new AbortController();
    output.mockImplementation(async () => {
      controller.abort();
      throw new Error('aborted');
    });
    const answer = await ask({ signal: controller.signal });
    expect([answer.status, answer.body, onError.mock.calls]).toEqual([499, null, []]);
  });

  it('is 404 for a path without a name, and the app is not asked', async () => {
    const { ask, authorize } = start();
    expect((await ask({}, '/')).status).toBe(404);
    expect(authorize).not.toHaveBeenCalled();
  });

  it('names 80 characters of the id at most while a program is developed', async () => {
    vi.stubEnv('NODE_ENV', 'development');
    const { ask } = start({ authorize: () => false });
    expect(await (await ask({}, `/files/${'x'.repeat(90)}`)).text()).toBe(
      `Not found. The id looked for is "${'x'.repeat(80)}". Pass jobId to createOutputHandler to change it.`,
    );
  });

  it('is 502 for a part that was not asked for, which is let go of', async () => {
    const { ask, output, onError } = start();
    const { response, cancel } = watched({ status: 206, headers: VIDEO });
    output.mockResolvedValue(response);
    expect((await ask()).status).toBe(502);
    expect(cancel).toHaveBeenCalledOnce();
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        name: 'DownloadError',
        message: 'The service answered with a part of the file of job job_1 that was not asked for.',
        code: 'interrupted',
        jobId: 'job_1',
      }),
      expect.any(Request),
    );
  });

  it('is 500 where the app fails to name the file, which is let go of', async () => {
    const thrown = new Error('mine');
    const { ask, output, onError } = start({ filename: () => Promise.reject(thrown) });
    const { response, cancel } = watched({ headers: VIDEO });
    output.mockResolvedValue(response);
    expect((await ask()).status).toBe(500);
    expect(cancel).toHaveBeenCalledOnce();
    expect(onError).toHaveBeenCalledExactlyOnceWith(thrown, expect.any(Request));
  });
});

describe('a copy', () => {
  const from = (get: OutputSource['get']) => ({ source: () => ({ get }) });

  it.each<[number, string[]]>([
    [404, []],
    [403, ['The copy of job job_1 was answered with 403.']],
    [206, ['The copy of job job_1 was answered with 206.']],
  ])('that is answered with %i is let go of, and the service is read', async (status, told) => {
    const { response, cancel } = watched({ status });
    const { ask, onError } = start(from(async () => response));
    expect(await (await ask()).text()).toBe('12345');
    expect(cancel).toHaveBeenCalledOnce();
    expect(onError.mock.calls.map(([{ message }]) => message)).toEqual(told);
  });

  it('that comes after its ten seconds is let go of', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let give = (_: Response | undefined) => {};
    const get = () => new Promise<Response | undefined>((resolve) => (give = resolve));
    const { ask, onError } = start(from(get));
    const { response, cancel } = watched();
    for (const late of [response, new Response(null), undefined]) {
      const asked = ask();
      await vi.advanceTimersByTimeAsync(10_100);
      expect(await (await asked).text()).toBe('12345');
      give(late);
    }
    await new Promise(setImmediate);
    expect(cancel).toHaveBeenCalledOnce();
    expect(onError.mock.calls.map(([{ message }]) => message)).toEqual(
      Array(3).fill('The source has not answered within 10000 ms.'),
    );
  });

  it('of R2 without a type is a file to be saved', async () => {
    const object = { size: 5, httpEtag: '"1"', uploaded: new Date(0) };
    const get = async () => ({ ...object, body: new Blob(['12345']).stream() });
    const store = r2({ head: async () => object, get, put: get } as never, 'fox.mp4');
    const answer = await store.get({ method: 'GET' });
    expect(Object.fromEntries(answer?.headers ?? [])).toEqual({
      'accept-ranges': 'bytes',
      'content-length': '5',
      'content-type': 'application/octet-stream',
      etag: '"1"',
      'last-modified': 'Thu, 01 Jan 1970 00:00:00 GMT',
    });
  });
});

it.each([
  [16 * 1024 * 1024, true],
  [16 * 1024 * 1024 + 1, false],
  [undefined, false],
])('on Bun a file of %s bytes is given in one piece: %s', async (sizeBytes, isOnePiece) => {
  vi.stubGlobal('Bun', {});
  const headers = { ...VIDEO, ...(sizeBytes !== undefined && { 'content-length': `${sizeBytes}` }) };
  const found = new Response('12345', { headers });
  const showing = { name: 'fox', isSaved: false, cacheControl: 'private' };
  const answer = await fileResponse(new Request('https://app.test/'), found, showing);
  expect(found.bodyUsed).toBe(isOnePiece);
  expect(await answer.text()).toBe('12345');
});

describe('a handler cannot be made', () => {
  const client = { jobs: { get() {}, output() {}, outputInfo() {} } };
  const NEEDS =
    'createOutputHandler needs authorize: a function (request, jobId) that returns true where the request may see the file. Without it everybody could see every file.';
  const NO_CLIENT = 'createOutputHandler({ client, authorize }): the first argument must be a GenClient, not';
  it.each<[unknown, string]>([
    [null, 'createOutputHandler: options must be an object such as { client }, not null.'],
    [undefined, `${NO_CLIENT} undefined.`],
    [{ client: 7 }, 'client must be an object, not 7.'],
    [{ client: {} }, `${NO_CLIENT} an object.`],
    [{ client }, NEEDS],
    [{ client, authorize: true }, 'authorize must be a function, not true.'],
    [{ client, jobId: 'x' }, 'jobId must be a function, not a string.'],
    [{ client, source: {} }, 'source must be a function, not an object.'],
    [{ client, filename: 'x' }, 'filename must be a function, not a string.'],
    [{ client, onError: 7 }, 'onError must be a function, not 7.'],
    [{ client, disposition: 'save' }, 'disposition must be one of "inline", "attachment", not "save".'],
    [{ client, cacheControl: '' }, 'cacheControl must be a non-empty string, not "".'],
    [{ client, authorise: true }, 'createOutputHandler has no option "authorise". Did you mean "authorize"?'],
  ])('with %j: %s', (options, message) => {
    expect(() => createOutputHandler(options as never)).toThrow(expect.objectContaining({ name: 'GenError', message }));
  });
});
