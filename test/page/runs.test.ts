// The page entry point in a fake browser. For Chromium, see chromium.test.ts.
import { createGenPage } from 'gen-client/page';
import { describe, expect, it, vi } from 'vitest';
import { deferred } from '../support/deferred.js';
import {
  browser,
  DONE,
  errorResponse,
  fakeBrowserPerTest,
  openPage,
  outcomeOf,
  PROMPT,
  paths,
  settle,
  statesOf,
  storedRuns,
} from './fake-browser.js';

fakeBrowserPerTest();

it("createGenPage requires the proxy's URL", () => {
  expect(() => createGenPage({} as { url: string })).toThrow('createGenPage: url is missing');
});

describe('a run', () => {
  it("creates a job with its key, waits for it, and ends with the file's URL", async () => {
    browser.responses = {
      videos: [{ ticket: 't1', status: 'queued', etaMs: 9_000, progress: 0.1, tokens: 50 }],
      watch: [
        { status: 'processing', etaMs: 4_000, progress: 0.5, tokens: 50, againMs: 1_700 },
        { status: 'completed', url: 'file?t=f1' },
      ],
    };
    const run = openPage('/api/gen/').videos.create(PROMPT);
    const states = statesOf(run);
    await settle();
    expect(browser.requests[0]).toEqual({
      path: '/api/gen/videos',
      body: { key: run.id, input: PROMPT, session: 's1' },
    });
    expect(browser.xhrs[0]).toMatchObject({
      method: 'POST',
      withCredentials: true,
      headers: { 'x-gen-page': '1', 'content-type': 'application/json' },
    });
    expect(storedRuns()).toEqual({ [run.id]: { ticket: 't1' } });

    // The proxy determines the time of the next request.
    await vi.advanceTimersByTimeAsync(1_699);
    expect(paths()).toEqual(['videos', 'watch']);
    await vi.advanceTimersByTimeAsync(1);
    expect(browser.requests.slice(1)).toEqual([
      { path: '/api/gen/watch', body: { jobs: [{ ticket: 't1', seen: 'queued' }], hold: true } },
      { path: '/api/gen/watch', body: { jobs: [{ ticket: 't1', seen: 'processing' }], hold: true } },
    ]);
    expect(states.map(({ phase, uploaded, status }) => [phase, uploaded, status])).toEqual([
      ['creating', 1, undefined],
      ['creating', 1, undefined],
      ['creating', 1, undefined],
      ['waiting', 1, 'queued'],
      ['waiting', 1, 'processing'],
      ['done', 1, 'completed'],
    ]);
    expect(states[3]).toMatchObject({ etaMs: 9_000, progress: 0.1, tokens: 50, url: undefined });
    expect(await outcomeOf(run)).toBe(run.get());
    expect(run.get().url).toBe('/api/gen/file?t=f1');
    expect(vi.getTimerCount()).toBe(0);
  });

  it("uses its verb's endpoint, and waits while two creates are in flight", async () => {
    const page = openPage();
    for (const verb of ['images', 'videos', 'videoEdits', 'characters'] as const) page[verb].create(PROMPT);
    await settle();
    // Browsers have six connections.
    expect(paths()).toEqual(['images', 'videos']);
  });

  it("fails with the job's error and sends nothing more", async () => {
    const error = { code: 'content_rejected', message: 'The prompt was rejected.' };
    browser.responses = { videos: [{ ticket: 't1', status: 'failed', error }] };
    const run = openPage().videos.create(PROMPT);
    const failure = await outcomeOf(run);
    expect(failure).toEqual(error);
    await expect(run.done).rejects.toBeInstanceOf(Error);
    expect(run.get()).toMatchObject({ phase: 'failed', error });
    expect(paths()).toEqual(['videos']);
  });

  it("follows a server-created job's ticket", async () => {
    browser.responses = { watch: [{ status: 'completed', url: 'file?t=f9' }] };
    const page = openPage();
    const run = page.watch('t9');
    expect([run.id, run.get().phase, page.watch('t9') === run]).toEqual(['t9', 'waiting', true]);
    expect(await outcomeOf(run)).toMatchObject({ url: '/api/gen/file?t=f9' });
    expect(browser.requests).toEqual([{ path: '/api/gen/watch', body: { jobs: [{ ticket: 't9' }], hold: true } }]);
  });

  it('calls each listener on each change until it unsubscribes, and returns the same state in between', async () => {
    browser.responses = {
      videos: [{ ticket: 't1', status: 'queued' }],
      watch: [{ status: 'queued', againMs: 1_000 }, DONE],
    };
    const run = openPage().videos.create(PROMPT);
    expect(run.get()).toBe(run.get());
    const listener = vi.fn();
    const other = vi.fn();
    const unsubscribe = run.subscribe(listener);
    run.subscribe(other);
    await settle();
    expect([listener, other].map(({ mock }) => mock.calls.length)).toEqual([4, 4]);
    unsubscribe();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([listener, other].map(({ mock }) => mock.calls.length)).toEqual([4, 5]);
  });
});

describe('a run whose request fails', () => {
  it.each([
    [
      'a temporary error',
      () => errorResponse(429, { code: 'no_such', message: 'No.', retry: true }),
      { code: 'no_such', message: 'No.' },
    ],
    ['no connection', () => new TypeError('fetch'), { code: 'network', message: 'The connection failed. Try again.' }],
  ])(
    'with %s retries its create after 1, 2, 4, 8, and 16 s, then fails, and resume() uses the same key',
    async (_, response, expected) => {
      browser.responses = { videos: [response()] };
      const page = openPage();
      const run = page.videos.create(PROMPT);
      await settle();
      for (const [index, seconds] of [1, 2, 4, 8, 16].entries()) {
        await vi.advanceTimersByTimeAsync(seconds * 1_000 - 1);
        expect(browser.requests).toHaveLength(index + 1);
        await vi.advanceTimersByTimeAsync(1);
        expect(browser.requests).toHaveLength(index + 2);
      }
      expect(await outcomeOf(run)).toEqual(expected);
      expect(vi.getTimerCount()).toBe(0);
      expect(new Set(browser.requests.map(({ body }) => body.key))).toEqual(new Set([run.id]));
      browser.responses = { videos: [DONE] };
      const [resumed] = openPage().resume();
      expect([resumed?.id, resumed?.get()]).toEqual([run.id, { phase: 'creating', isCancelable: false, uploaded: 1 }]);
      expect(await outcomeOf(resumed)).toMatchObject({ phase: 'done' });
    },
  );

  it.each([
    ['a 503', 503, '<html>'],
    ['a response without jobs', 200, '{}'],
  ])('with %s retries its wait indefinitely, at least every half minute', async (_, status, body) => {
    browser.responses = { watch: [errorResponse(status, body)] };
    const run = openPage().watch('t1');
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000 + 8_000 + 16_000);
    expect(browser.requests).toHaveLength(6);
    await vi.advanceTimersByTimeAsync(300_000);
    expect(browser.requests).toHaveLength(16);
    browser.responses = { watch: [DONE] };
    await vi.advanceTimersByTimeAsync(30_000);
    expect(run.get().phase).toBe('done');
  });
});

describe('stop() and forget()', () => {
  it('stop() ends the request and the run, and resume() follows the job with its key', async () => {
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    const states = statesOf(run);
    run.stop();
    expect(await outcomeOf(run)).toEqual({ code: 'stopped', message: 'The run was stopped.' });
    // The response still identifies the key's job.
    expect(browser.xhrs[0]?.isAborted).toBe(false);
    expect(states).toHaveLength(1);
    browser.responses = { videos: [DONE] };
    const [resumed] = page.resume();
    expect([resumed?.id, resumed === run]).toEqual([run.id, false]);
    expect(await outcomeOf(resumed)).toMatchObject({ phase: 'done' });
  });

  it('resume() returns a run in progress unchanged', async () => {
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    expect(page.resume()).toEqual([run]);
    expect(paths()).toEqual(['videos']);
  });

  it('a run stopped between two requests sends nothing more', async () => {
    browser.responses = {
      videos: [{ ticket: 't1', status: 'queued', againMs: 1_000 }],
      watch: [errorResponse(503, '<html>')],
    };
    const run = openPage().videos.create(PROMPT);
    await settle();
    run.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(paths()).toEqual(['videos', 'watch']);

    const watchedRun = openPage().watch('t2');
    await settle();
    watchedRun.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(paths()).toEqual(['videos', 'watch', 'watch']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("forget() removes the run after its create's response, and until then its key finds the job", async () => {
    const { promise: response, resolve: respond } = deferred<object>();
    browser.responses = { videos: [response, new Promise<object>(() => {})] };
    const page = openPage();
    const run = page.videos.create(PROMPT);
    const other = page.videos.create({ prompt: 'a crow' });
    await settle();
    run.forget();
    expect(await outcomeOf(run)).toMatchObject({ code: 'stopped' });
    expect(Object.keys(storedRuns())).toEqual([run.id, other.id]);
    respond({ ticket: 't1', status: 'queued' });
    await settle();
    expect(Object.keys(storedRuns())).toEqual([other.id]);
    expect(page.resume()).toEqual([other]);
  });
});

describe('files', () => {
  const png = () => new File(['12345'], 'fox.png', { type: 'image/png' });

  it('are sent directly to the storage, and their tickets replace them in the input', async () => {
    browser.responses = {
      upload: [{ put: 'p1', direct: { url: 'https://bucket/1', headers: { 'content-type': 'image/png' } } }],
      uploaded: [{ upload: 'u1' }],
      videos: [DONE],
    };
    const file = png();
    const run = openPage().videos.create({ ...PROMPT, first_frame_upload_id: file, upload_ids: ['u0', file], n: 2 });
    const states = statesOf(run);
    await outcomeOf(run);
    expect(browser.requests.map(({ path, body }) => [path.replace('/api/gen/', ''), body])).toEqual([
      ['upload', { name: 'fox.png', type: 'image/png', size: 5 }],
      ['uploaded', { put: 'p1' }],
      [
        'videos',
        {
          key: run.id,
          session: 's1',
          input: { ...PROMPT, first_frame_upload_id: 'u1', upload_ids: ['u0', 'u1'], n: 2 },
        },
      ],
    ]);
    expect(browser.uploads.map(({ method, url, headers, body }) => [method, url, headers, body === file])).toEqual([
      ['PUT', 'https://bucket/1', { 'content-type': 'image/png' }, true],
    ]);
    expect(states.slice(0, 3).map(({ phase }) => phase)).toEqual(['uploading', 'uploading', 'creating']);
  });

  it.each([
    ['has no URL for pages', undefined, []],
    ['rejects the page', 403, ['PUT']],
    ['is unreachable for the page', 'broken' as const, ['PUT']],
  ])('are sent through the proxy if the storage %s', async (_, status, directMethods) => {
    const direct = status === undefined ? undefined : { url: 'https://bucket/1', headers: {} };
    browser.uploadStatus = { PUT: status ?? 200 };
    browser.responses = { upload: [{ put: 'p1', direct }], uploaded: [{ upload: 'u1' }], videos: [DONE] };
    const run = openPage().videos.create({ first_frame_upload_id: new Blob(['1'], { type: 'image/png' }) });
    expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
    expect(browser.requests[0]?.body).toEqual({ type: 'image/png', size: 1 });
    expect(browser.uploads.map(({ method }) => method)).toEqual([...directMethods, 'POST']);
    expect(browser.uploads.at(-1)).toMatchObject({
      url: '/api/gen/bytes',
      headers: { 'x-gen-page': '1', 'x-gen-ticket': 'p1' },
    });
  });

  it('fail the run if neither storage nor proxy accepts them', async () => {
    browser.uploadStatus = { POST: 500 };
    browser.responses = { upload: [{ put: 'p1' }] };
    const run = openPage().videos.create({ first_frame_upload_id: png() });
    expect(await outcomeOf(run)).toEqual({
      code: 'service_error',
      message: '/api/gen/bytes returned 500.',
    });
    expect(paths()).toEqual(['upload']);
  });

  it('share one progress value', async () => {
    browser.uploadStatus = { POST: 'pending' };
    browser.responses = { upload: [{ put: 'p1' }, { put: 'p2' }] };
    const run = openPage().videos.create({ first_frame_upload_id: new Blob(['123']), upload_ids: [new Blob(['1'])] });
    await settle();
    browser.uploads[0]?.upload.onprogress?.({ loaded: 1 });
    expect(run.get()).toEqual({ phase: 'uploading', isCancelable: true, uploaded: 0.25 });
    browser.uploads[0]?.upload.onprogress?.({ loaded: 3 });
    expect(run.get().uploaded).toBe(0.75);
    // Uploads run one at a time.
    expect(browser.uploads).toHaveLength(1);
    const empty = openPage().videos.create({ first_frame_upload_id: new Blob([]) });
    await settle();
    browser.uploads[1]?.upload.onprogress?.({ loaded: 0 });
    expect(empty.get().uploaded).toBe(0);
  });
});

/** Creates a 200 response with a truncated body. */
const truncatedResponse = () =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"ticket":"t1","sta'));
        controller.error(new TypeError('terminated'));
      },
    }),
  );

describe('an invalid response', () => {
  it.each([
    ['is truncated after its 200', truncatedResponse],
    ['is an HTML login page', () => errorResponse(200, '<!doctype html><form>Sign in</form>')],
    ['has no ticket', () => errorResponse(200, '{"status":"queued"}')],
    ['is empty', () => new Response(null, { status: 204 })],
  ])('that %s makes the page retry its create with the same key', async (_, response) => {
    browser.responses = { videos: [response(), DONE] };
    const run = openPage().videos.create(PROMPT);
    await settle();
    expect(run.get().phase).toBe('creating');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
    const body = { key: run.id, input: PROMPT, session: 's1' };
    // Retries aren't held, because a reverse proxy may have closed the held request.
    expect(browser.requests.map(({ body }) => body)).toEqual([body, { ...body, hold: false }]);
  });

  it.each([
    ['upload', { upload: [errorResponse(200, '<html>')] }],
    ['uploaded', { upload: [{ put: 'p1' }], uploaded: [errorResponse(200, '{}')] }],
  ])('to %s fails the run before it sends its create', async (path, responses) => {
    browser.responses = responses;
    const run = openPage().videos.create({ first_frame_upload_id: new Blob(['1']) });
    await vi.advanceTimersByTimeAsync(31_000);
    expect(await outcomeOf(run)).toMatchObject({ code: 'network' });
    expect(paths().at(-1)).toBe(path);
  });
});

describe('a throwing listener', () => {
  it("doesn't affect the run or other listeners, and its error is reported", async () => {
    const reportError = vi.fn();
    vi.stubGlobal('reportError', reportError);
    browser.responses = { videos: [DONE] };
    const run = openPage().videos.create(PROMPT);
    const error = new Error('a component');
    run.subscribe(() => {
      throw error;
    });
    const states = statesOf(run);
    expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
    expect(run.get()).toMatchObject({ phase: 'done' });
    expect(states.at(-1)?.phase).toBe('done');
    expect(reportError.mock.calls).toEqual([[error], [error], [error]]);
  });

  it("doesn't replace a failed run's error, even without reportError", async () => {
    vi.stubGlobal('reportError', undefined);
    const error = { code: 'generation_rejected', message: 'No.' };
    browser.responses = { videos: [{ ticket: 't1', status: 'failed', error }] };
    const run = openPage().videos.create(PROMPT);
    run.subscribe(() => {
      throw new Error('a component');
    });
    expect(await outcomeOf(run)).toEqual(error);
  });
});
