// The page entry point in a fake browser. For Chromium, see chromium.test.ts.
import { createGenPage } from 'gen-client/page';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { quiet } from '../support/quiet.js';
import {
  browser,
  closeBrowser,
  DONE,
  endOf,
  errorResponse,
  kept,
  open,
  openBrowser,
  PROMPT,
  paths,
  settled,
  statesOf,
} from './fake-browser.js';

beforeAll(quiet);

beforeEach(openBrowser);
afterEach(closeBrowser);

it("createGenPage requires the proxy's URL", () => {
  expect(() => createGenPage({} as { url: string })).toThrow('createGenPage: url is missing');
});

describe('a run', () => {
  it("creates a job with its key, waits for it, and ends with its file's URL", async () => {
    browser.answers = {
      videos: [{ ticket: 't1', status: 'queued', etaMs: 9_000, progress: 0.1, tokens: 50 }],
      watch: [
        { status: 'processing', etaMs: 4_000, progress: 0.5, tokens: 50, againMs: 1_700 },
        { status: 'completed', url: 'file?t=f1' },
      ],
    };
    const run = open('/api/gen/').videos.create(PROMPT);
    const states = statesOf(run);
    await settled();
    expect(browser.asked[0]).toEqual({
      path: '/api/gen/videos',
      body: { key: run.id, input: PROMPT, session: 's1' },
    });
    expect(browser.requests[0]).toMatchObject({
      method: 'POST',
      withCredentials: true,
      headers: { 'x-gen-page': '1', 'content-type': 'application/json' },
    });
    expect(kept()).toEqual({ [run.id]: { ticket: 't1' } });

    // The proxy determines the time of the next request.
    await vi.advanceTimersByTimeAsync(1_699);
    expect(paths()).toEqual(['videos', 'watch']);
    await vi.advanceTimersByTimeAsync(1);
    expect(browser.asked.slice(1)).toEqual([
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
    expect(await endOf(run)).toBe(run.get());
    expect(run.get().url).toBe('/api/gen/file?t=f1');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('uses the endpoint of its verb', async () => {
    const page = open();
    for (const verb of ['images', 'videos', 'videoEdits', 'characters'] as const) page[verb].create(PROMPT);
    await settled();
    // Two creates at a time, because browsers have six connections.
    expect(paths()).toEqual(['images', 'videos']);
  });

  it("fails with the job's error and sends nothing more", async () => {
    const error = { code: 'content_rejected', message: 'The prompt was refused.' };
    browser.answers = { videos: [{ ticket: 't1', status: 'failed', error }] };
    const run = open().videos.create(PROMPT);
    const failure = await endOf(run);
    expect(failure).toEqual(error);
    await expect(run.done).rejects.toBeInstanceOf(Error);
    expect(run.get()).toMatchObject({ phase: 'failed', error });
    expect(paths()).toEqual(['videos']);
  });

  it("follows a server-created job's ticket", async () => {
    browser.answers = { watch: [{ status: 'completed', url: 'file?t=f9' }] };
    const page = open();
    const run = page.watch('t9');
    expect([run.id, run.get().phase, page.watch('t9') === run]).toEqual(['t9', 'waiting', true]);
    expect(await endOf(run)).toMatchObject({ url: '/api/gen/file?t=f9' });
    expect(browser.asked).toEqual([{ path: '/api/gen/watch', body: { jobs: [{ ticket: 't9' }], hold: true } }]);
  });

  it('calls each listener on each change until it unsubscribes, and has a stable state in between', async () => {
    browser.answers = {
      videos: [{ ticket: 't1', status: 'queued' }],
      watch: [{ status: 'queued', againMs: 1_000 }, DONE],
    };
    const run = open().videos.create(PROMPT);
    expect(run.get()).toBe(run.get());
    const listener = vi.fn();
    const other = vi.fn();
    const leave = run.subscribe(listener);
    run.subscribe(other);
    await settled();
    expect([listener, other].map(({ mock }) => mock.calls.length)).toEqual([4, 4]);
    leave();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([listener, other].map(({ mock }) => mock.calls.length)).toEqual([4, 5]);
  });
});

describe('a failed request', () => {
  it.each([
    [
      400,
      { code: 'prompt_required', message: 'Write a prompt.' },
      { code: 'prompt_required', message: 'Write a prompt.' },
    ],
    [401, {}, { code: 'service_error', message: '/api/gen/videos returned 401.' }],
    [403, 'null', { code: 'service_error', message: '/api/gen/videos returned 403.' }],
    [404, '<html>', { code: 'service_error', message: '/api/gen/videos returned 404.' }],
  ])('with %i and %j fails the run immediately', async (status, body, expected) => {
    browser.answers = { videos: [errorResponse(status, body)] };
    const run = open().videos.create(PROMPT);
    expect(await endOf(run)).toEqual(expected);
    expect(run.get()).toMatchObject({ phase: 'failed', error: expected });
    expect(paths()).toEqual(['videos']);
  });

  it.each([
    [
      'a temporary error',
      () => errorResponse(429, { code: 'no_such', message: 'No.', retry: true }),
      { code: 'no_such', message: 'No.' },
    ],
    ['no connection', () => new TypeError('fetch'), { code: 'network', message: 'The connection failed. Try again.' }],
  ])(
    'with %s retries a create after 1, 2, 4, 8, and 16 s, then fails, and resume() uses the same key',
    async (_, response, expected) => {
      browser.answers = { videos: [response()] };
      const page = open();
      const run = page.videos.create(PROMPT);
      await settled();
      for (const [index, seconds] of [1, 2, 4, 8, 16].entries()) {
        await vi.advanceTimersByTimeAsync(seconds * 1_000 - 1);
        expect(browser.asked).toHaveLength(index + 1);
        await vi.advanceTimersByTimeAsync(1);
        expect(browser.asked).toHaveLength(index + 2);
      }
      expect(await endOf(run)).toEqual(expected);
      expect(vi.getTimerCount()).toBe(0);
      expect(new Set(browser.asked.map(({ body }) => body.key))).toEqual(new Set([run.id]));
      browser.answers = { videos: [DONE] };
      const [resumed] = open().resume();
      expect([resumed?.id, resumed?.get()]).toEqual([run.id, { phase: 'creating', isCancelable: false, uploaded: 1 }]);
      expect(await endOf(resumed)).toMatchObject({ phase: 'done' });
    },
  );

  it('retries a wait indefinitely, at most half a minute apart', async () => {
    browser.answers = { watch: [errorResponse(503, '<html>')] };
    const run = open().watch('t1');
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000 + 8_000 + 16_000);
    expect(browser.asked).toHaveLength(6);
    await vi.advanceTimersByTimeAsync(300_000);
    expect(browser.asked).toHaveLength(16);
    browser.answers = { watch: [DONE] };
    await vi.advanceTimersByTimeAsync(30_000);
    expect(run.get().phase).toBe('done');
  });
});

describe('stop() and forget()', () => {
  it('stop() ends the request and the run, and resume() follows the job with its key', async () => {
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    const states = statesOf(run);
    run.stop();
    expect(await endOf(run)).toEqual({ code: 'stopped', message: 'The run was stopped.' });
    // The response still identifies the key's job.
    expect(browser.requests[0]?.isAborted).toBe(false);
    expect(states).toHaveLength(1);
    browser.answers = { videos: [DONE] };
    const [again] = page.resume();
    expect([again?.id, again === run]).toEqual([run.id, false]);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
  });

  it('resume() returns a run in progress unchanged', async () => {
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(page.resume()).toEqual([run]);
    expect(paths()).toEqual(['videos']);
  });

  it('a run stopped between two requests sends nothing more', async () => {
    browser.answers = {
      videos: [{ ticket: 't1', status: 'queued', againMs: 1_000 }],
      watch: [errorResponse(503, '<html>')],
    };
    const run = open().videos.create(PROMPT);
    await settled();
    run.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(paths()).toEqual(['videos', 'watch']);

    const failing = open().watch('t2');
    await settled();
    failing.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(paths()).toEqual(['videos', 'watch', 'watch']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("forget() removes the run after its create's response, and until then its key finds the job", async () => {
    let response = (_: object) => {};
    browser.answers = {
      videos: [new Promise<object>((resolve) => (response = resolve)), new Promise<object>(() => {})],
    };
    const page = open();
    const run = page.videos.create(PROMPT);
    const other = page.videos.create({ prompt: 'a crow' });
    await settled();
    run.forget();
    expect(await endOf(run)).toMatchObject({ code: 'stopped' });
    expect(Object.keys(kept())).toEqual([run.id, other.id]);
    response({ ticket: 't1', status: 'queued' });
    await settled();
    expect(Object.keys(kept())).toEqual([other.id]);
    expect(page.resume()).toEqual([other]);
  });
});

describe('files', () => {
  const png = () => new File(['12345'], 'fox.png', { type: 'image/png' });

  it('are sent directly to the storage, and their tickets replace them in the input', async () => {
    browser.answers = {
      upload: [{ put: 'p1', direct: { url: 'https://bucket/1', headers: { 'content-type': 'image/png' } } }],
      uploaded: [{ upload: 'u1' }],
      videos: [DONE],
    };
    const file = png();
    const run = open().videos.create({ ...PROMPT, first_frame_upload_id: file, upload_ids: ['u0', file], n: 2 });
    const states = statesOf(run);
    await endOf(run);
    expect(browser.asked.map(({ path, body }) => [path.replace('/api/gen/', ''), body])).toEqual([
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
    expect(browser.sends.map(({ method, url, headers, body }) => [method, url, headers, body === file])).toEqual([
      ['PUT', 'https://bucket/1', { 'content-type': 'image/png' }, true],
    ]);
    expect(states.slice(0, 3).map(({ phase }) => phase)).toEqual(['uploading', 'uploading', 'creating']);
  });

  it.each([
    ['has no URL for pages', undefined, []],
    ['rejects the page', 403, ['PUT']],
    ['is unreachable for the page', 'broken' as const, ['PUT']],
  ])('are sent through the proxy if the storage %s', async (_, status, before) => {
    const direct = status === undefined ? undefined : { url: 'https://bucket/1', headers: {} };
    browser.bytesStatus = { PUT: status ?? 200 };
    browser.answers = { upload: [{ put: 'p1', direct }], uploaded: [{ upload: 'u1' }], videos: [DONE] };
    const run = open().videos.create({ first_frame_upload_id: new Blob(['1'], { type: 'image/png' }) });
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
    expect(browser.asked[0]?.body).toEqual({ type: 'image/png', size: 1 });
    expect(browser.sends.map(({ method }) => method)).toEqual([...before, 'POST']);
    expect(browser.sends.at(-1)).toMatchObject({
      url: '/api/gen/bytes',
      headers: { 'x-gen-page': '1', 'x-gen-ticket': 'p1' },
    });
  });

  it('fail the run if neither storage nor proxy accepts them', async () => {
    browser.bytesStatus = { POST: 500 };
    browser.answers = { upload: [{ put: 'p1' }] };
    const run = open().videos.create({ first_frame_upload_id: png() });
    expect(await endOf(run)).toEqual({
      code: 'service_error',
      message: '/api/gen/bytes returned 500.',
    });
    expect(paths()).toEqual(['upload']);
  });

  it('share one upload progress', async () => {
    browser.bytesStatus = { POST: 'pending' };
    browser.answers = { upload: [{ put: 'p1' }, { put: 'p2' }] };
    const run = open().videos.create({ first_frame_upload_id: new Blob(['123']), upload_ids: [new Blob(['1'])] });
    await settled();
    browser.sends[0]?.upload.onprogress?.({ loaded: 1 });
    expect(run.get()).toEqual({ phase: 'uploading', isCancelable: true, uploaded: 0.25 });
    browser.sends[0]?.upload.onprogress?.({ loaded: 3 });
    expect(run.get().uploaded).toBe(0.75);
    // Uploads run one at a time.
    expect(browser.sends).toHaveLength(1);
    const empty = open().videos.create({ first_frame_upload_id: new Blob([]) });
    await settled();
    browser.sends[1]?.upload.onprogress?.({ loaded: 0 });
    expect(empty.get().uploaded).toBe(0);
  });
});

/** Creates a 200 response with a truncated body. */
const truncated = () =>
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
    ['is truncated after its 200', truncated],
    ['is an HTML login page', () => errorResponse(200, '<!doctype html><form>Sign in</form>')],
    ['has no ticket', () => errorResponse(200, '{"status":"queued"}')],
    ['is empty', () => new Response(null, { status: 204 })],
  ])('that %s retries a create with its key, creating one job', async (_, response) => {
    browser.answers = { videos: [response(), DONE] };
    const run = open().videos.create(PROMPT);
    await settled();
    expect(run.get().phase).toBe('creating');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
    const body = { key: run.id, input: PROMPT, session: 's1' };
    // Retries aren't held, because an intermediary may have cut the held request.
    expect(browser.asked.map(({ body }) => body)).toEqual([body, { ...body, hold: false }]);
  });

  it('makes a wait pause increasingly longer until the proxy responds again', async () => {
    browser.answers = { watch: [errorResponse(200, '{}')] };
    const run = open().watch('t1');
    await vi.advanceTimersByTimeAsync(31_000);
    expect(paths()).toHaveLength(6);
    browser.answers = { watch: [DONE] };
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
  });

  it.each([
    ['upload', { upload: [errorResponse(200, '<html>')] }],
    ['uploaded', { upload: [{ put: 'p1' }], uploaded: [errorResponse(200, '{}')] }],
  ])('ends an upload at %s before anything is paid', async (path, responses) => {
    browser.answers = responses;
    const run = open().videos.create({ first_frame_upload_id: new Blob(['1']) });
    await vi.advanceTimersByTimeAsync(31_000);
    expect(await endOf(run)).toMatchObject({ code: 'network' });
    expect(paths().at(-1)).toBe(path);
  });
});

describe('a throwing listener', () => {
  it("doesn't affect the run or other listeners, and its error is reported", async () => {
    const reportError = vi.fn();
    vi.stubGlobal('reportError', reportError);
    browser.answers = { videos: [DONE] };
    const run = open().videos.create(PROMPT);
    const broken = new Error('a component');
    run.subscribe(() => {
      throw broken;
    });
    const states = statesOf(run);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
    expect(run.get()).toMatchObject({ phase: 'done' });
    expect(states.at(-1)?.phase).toBe('done');
    expect(reportError.mock.calls).toEqual([[broken], [broken], [broken]]);
  });

  it("doesn't replace a failed run's own error, even without reportError", async () => {
    vi.stubGlobal('reportError', undefined);
    const error = { code: 'generation_rejected', message: 'No.' };
    browser.answers = { videos: [{ ticket: 't1', status: 'failed', error }] };
    const run = open().videos.create(PROMPT);
    run.subscribe(() => {
      throw new Error('a component');
    });
    expect(await endOf(run)).toEqual(error);
  });
});
