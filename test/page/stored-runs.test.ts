// Repeated creates, and the runs that a tab stores for its user across reloads.
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

const QUEUED_NOW = { ticket: 't1', status: 'queued' };
const QUEUED = { ...QUEUED_NOW, againMs: 60_000 };

describe('a repeated create', () => {
  it('while it is in flight returns the same run, so a double click creates one job', async () => {
    const page = openPage();
    const run = page.videos.create({ ...PROMPT, seconds: 5 });
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settle();
    expect(run.get().phase).toBe('creating');
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settle();
    expect(paths()).toEqual(['videos']);
  });

  it('during its upload returns the same run', async () => {
    browser.uploadStatus = { POST: 'pending' };
    browser.responses = { upload: [{ put: 'p1' }] };
    const page = openPage();
    const file = new Blob(['1']);
    const run = page.videos.create({ ...PROMPT, upload_ids: [file] });
    await settle();
    expect(run.get().phase).toBe('uploading');
    expect(page.videos.create({ ...PROMPT, upload_ids: [file] })).toBe(run);
    await settle();
    expect(browser.uploads).toHaveLength(1);
  });

  it.each([
    ['another prompt', { prompt: 'a crow' }],
    ['an additional field', { ...PROMPT, seconds: 5 }],
    ['another file of the same size', { ...PROMPT, first_frame_upload_id: new Blob(['2']) }],
    ['a file in another field', { ...PROMPT, last_frame_upload_id: new Blob(['1']) }],
    ['an object instead of the file', { ...PROMPT, first_frame_upload_id: {} }],
  ])('with %s returns another run', (_, other) => {
    const page = openPage();
    const run = page.videos.create({ ...PROMPT, first_frame_upload_id: new Blob(['1']) });
    expect(page.videos.create(other)).not.toBe(run);
  });

  it('with another verb returns another run', () => {
    const page = openPage();
    expect(page.images.create(PROMPT)).not.toBe(page.videos.create(PROMPT));
  });

  it.each([
    ['created', () => QUEUED_NOW],
    ['completed', () => DONE],
    ['rejected', () => errorResponse(402)],
  ])('after its job was %s returns a new run with a new key', async (_, response) => {
    browser.responses = { videos: [response()] };
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
    await settle();
    expect(new Set(browser.requests.map(({ path, body }) => path.endsWith('videos') && body.key)).size).toBeGreaterThan(
      1,
    );
  });

  it.each([
    ['the network failed', () => new TypeError('fetch failed')],
    ['a CDN timed out', () => errorResponse(504, '<html>')],
    ['the session had ended', () => errorResponse(401, { code: 'unauthorized' })],
  ])('after %s reuses its key, because the job may exist', async (_, response) => {
    browser.responses = { videos: [response()] };
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    await vi.advanceTimersByTimeAsync(31_000);
    expect(run.get().phase).toBe('failed');
    browser.responses = { videos: [DONE] };
    const repeated = page.videos.create(PROMPT);
    expect(page.videos.create(PROMPT)).toBe(repeated);
    expect(await outcomeOf(repeated)).toMatchObject({ phase: 'done' });
    expect(new Set(browser.requests.map(({ body }) => body.key))).toEqual(new Set([run.id]));
  });

  it.each(['stop', 'forget'] as const)('after %s() returns a new run', (method) => {
    const page = openPage();
    const run = page.videos.create(PROMPT);
    run[method]();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
  });
});

describe('a run whose job may still be running', () => {
  it.each([
    ['a create', 'creating', { videos: [errorResponse(401), DONE] }, ['videos', 'videos']],
    ['a wait', 'waiting', { videos: [QUEUED_NOW], watch: [errorResponse(401), DONE] }, ['videos', 'watch', 'watch']],
  ])('is resumed after %s without a session, with its key and ticket', async (_, phase, responses, expected) => {
    browser.responses = responses;
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    expect(run.get().phase).toBe('failed');
    const [resumed] = page.resume();
    expect([resumed?.id, resumed === run, resumed?.get().phase]).toEqual([run.id, false, phase]);
    expect(page.resume()).toEqual([resumed]);
    expect(await outcomeOf(resumed)).toMatchObject({ phase: 'done' });
    expect([run.get().phase, paths()]).toEqual(['failed', expected]);
    for (const { path, body } of browser.requests)
      if (path.endsWith('videos')) expect(body).toEqual({ key: run.id, input: PROMPT, session: 's1' });
  });

  it('is also removed by forget() on the failed run', async () => {
    browser.responses = { videos: [errorResponse(401)] };
    const page = openPage();
    const run = page.videos.create(PROMPT);
    await settle();
    const [resumed] = page.resume();
    run.forget();
    expect(await outcomeOf(resumed)).toMatchObject({ code: 'stopped' });
    expect(page.resume()).toEqual([]);
  });

  it('is restarted by watch()', async () => {
    browser.responses = { watch: [errorResponse(401), DONE] };
    const page = openPage();
    expect(await outcomeOf(page.watch('t1'))).toMatchObject({ code: 'no_such' });
    expect(await outcomeOf(page.watch('t1'))).toMatchObject({ phase: 'done' });
  });
});

it.each([
  ['done', { url: 'file?t=f1' }],
  ['failed', { error: { code: 'generation_rejected', message: 'No.' } }],
])('a run whose job is %s is returned by resume() without a request', async (phase, outcome) => {
  browser.responses = { videos: [{ ticket: 't1', status: 'over', ...outcome }] };
  const page = openPage();
  const run = page.videos.create(PROMPT);
  await settle();
  expect(run.get().phase).toBe(phase);
  expect(page.resume()).toEqual([run]);
  await settle();
  expect(paths()).toEqual(['videos']);
});

describe.each(['stop', 'forget'] as const)('%s() during an upload', (method) => {
  const direct = { url: 'https://bucket/1', headers: {} };
  const input = () => ({ first_frame_upload_id: new Blob(['1']) });

  it("doesn't send the file through the proxy", async () => {
    browser.uploadStatus = { PUT: 'pending' };
    browser.responses = { upload: [{ put: 'p1', direct }], uploaded: [{ upload: 'u1' }], videos: [DONE] };
    const run = openPage().videos.create(input());
    await settle();
    run[method]();
    await settle();
    expect(browser.uploads.map(({ method, isAborted }) => [method, isAborted])).toEqual([['PUT', true]]);
    expect(paths()).toEqual(['upload']);
  });

  it("sends no bytes if the upload hasn't started", async () => {
    const { promise, resolve: respond } = deferred<object>();
    browser.responses = { upload: [promise] };
    const run = openPage().videos.create(input());
    await settle();
    run[method]();
    respond({ put: 'p1', direct });
    await settle();
    expect([browser.uploads, paths()]).toEqual([[], ['upload']]);
  });
});

const OTHER_USER = { code: 'other_user', message: 'This was requested in another session.' };
const NOT_FOUND = { code: 'not_found', message: 'This does not exist.' };

/** Creates a run that receives these responses, and clears the recorded requests, as if the tab reloads next. */
async function runBeforeReload(responses: (typeof browser)['responses']) {
  browser.responses = responses;
  const run = openPage().videos.create(PROMPT);
  await settle();
  browser.requests.length = 0;
  return run;
}

describe('after a reload', () => {
  it.each([
    ['waiting', QUEUED],
    ['done', DONE],
    ['failed', { ticket: 't1', status: 'failed', error: { code: 'generation_rejected', message: 'No.' } }],
  ])(
    'a run that was %s is followed with its ticket, without a create and without storing its input',
    async (_, response) => {
      const run = await runBeforeReload({ videos: [response], watch: [DONE] });
      expect(JSON.stringify(storedRuns())).not.toContain(PROMPT.prompt);
      const [resumed] = openPage().resume();
      expect(resumed?.get()).toEqual({ phase: 'waiting', isCancelable: false, uploaded: 1 });
      expect(await outcomeOf(resumed)).toMatchObject({ phase: 'done', uploaded: 1, url: '/api/gen/file?t=f1' });
      expect([resumed?.id, browser.requests]).toEqual([
        run.id,
        [{ path: '/api/gen/watch', body: { jobs: [{ ticket: 't1' }], hold: true } }],
      ]);
    },
  );

  it('a create without a response is retried with its session', async () => {
    const run = await runBeforeReload({});
    expect(storedRuns()).toEqual({ [run.id]: { verb: 'videos', session: 's1', input: PROMPT } });
    browser.responses = { videos: [DONE] };
    expect(await outcomeOf(openPage().resume()[0])).toMatchObject({ phase: 'done' });
    const body = { key: run.id, input: PROMPT, session: 's1' };
    expect([browser.requests, browser.sessions]).toEqual([[{ path: '/api/gen/videos', body }], 1]);
  });

  it.each([
    ['whose create got no response', {}, { videos: [errorResponse(403, OTHER_USER)] }, OTHER_USER],
    ['that was waiting', { videos: [QUEUED] }, { watch: [errorResponse(404, NOT_FOUND)] }, NOT_FOUND],
    ['that was completed', { videos: [DONE] }, { watch: [errorResponse(404, NOT_FOUND)] }, NOT_FOUND],
  ])(
    'a run %s is removed without being shown if another user has signed in',
    async (_, responses, laterResponses, error) => {
      await runBeforeReload(responses);
      browser.responses = laterResponses;
      const page = openPage();
      const [run] = page.resume();
      const states = run ? statesOf(run) : [];
      expect(await outcomeOf(run)).toEqual(error);
      expect(states.map(({ phase, status, url, tokens }) => [phase, status, url, tokens])).toEqual([
        ...states.slice(1).map(() => [expect.stringMatching(/^(creating|waiting)$/), undefined, undefined, undefined]),
        ['failed', undefined, undefined, undefined],
      ]);
      expect([storedRuns(), page.resume(), openPage().resume(), browser.requests.length]).toEqual([{}, [], [], 1]);
    },
  );

  it.each([
    ['401', errorResponse(401, { code: 'unauthorized', message: 'Sign in first.' })],
    ['a 404 from another server', errorResponse(404, '<html>')],
  ])('a run whose wait gets %s is retained', async (_, response) => {
    const run = await runBeforeReload({ videos: [QUEUED] });
    browser.responses = { watch: [response] };
    const [resumed] = openPage().resume();
    await outcomeOf(resumed);
    expect(resumed?.get().phase).toBe('failed');
    expect(Object.keys(storedRuns())).toEqual([run.id]);
  });
});

describe('the session ticket', () => {
  it('is requested once, before the first create', async () => {
    browser.responses = { videos: [DONE], watch: [DONE] };
    const page = openPage();
    page.watch('t9');
    page.resume();
    await settle();
    expect(browser.sessions).toBe(0);
    for (const prompt of ['a fox', 'a crow', 'a hare']) page.videos.create({ prompt });
    await settle();
    page.videos.create({ prompt: 'a wolf' });
    await settle();
    expect(browser.sessions).toBe(1);
    expect(browser.requests.slice(1).map(({ body }) => body.session)).toEqual(['s1', 's1', 's1', 's1']);
  });

  it('is retained after a rejection, so no later click creates a job for the next user', async () => {
    browser.responses = { videos: [errorResponse(403, OTHER_USER)] };
    const page = openPage();
    for (let click = 0; click < 2; click++) expect(await outcomeOf(page.videos.create(PROMPT))).toEqual(OTHER_USER);
    expect(browser.requests.map(({ body }) => body.session)).toEqual(['s1', 's1']);
  });

  it.each([
    ['a wait was rejected', { videos: [QUEUED_NOW], watch: [errorResponse(404, NOT_FOUND)] }],
    ['a create has failed for half a minute', { videos: [errorResponse(503)] }],
  ])('is retained if %s, so the tab creates nothing for a user who signed in elsewhere', async (_, responses) => {
    browser.responses = responses;
    const page = openPage();
    page.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(31_000);
    browser.responses = { videos: [errorResponse(403, OTHER_USER)] };
    expect(await outcomeOf(page.videos.create({ prompt: 'a crow' }))).toEqual(OTHER_USER);
    expect([browser.sessions, browser.requests.at(-1)?.body.session]).toEqual([1, 's1']);
  });

  it('is requested again if the network fails, before anything is uploaded', async () => {
    const responses = [new TypeError('fetch'), errorResponse(200, '<html>'), { ticket: 'sA' }];
    browser.responses = { session: responses, videos: [DONE] };
    const run = openPage().videos.create({ first_frame_upload_id: new Blob([]) });
    browser.responses.upload = [{ put: 'p1' }];
    browser.responses.uploaded = [{ upload: 'u1' }];
    await vi.advanceTimersByTimeAsync(1_000);
    expect(paths()).toEqual(['session', 'session']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
    expect(browser.requests.at(-1)?.body).toMatchObject({ session: 'sA' });
  });

  it('of a stopped run is reused by the next run', async () => {
    browser.responses = { videos: [DONE] };
    const page = openPage();
    page.videos.create(PROMPT).stop();
    expect(await outcomeOf(page.videos.create(PROMPT))).toMatchObject({ phase: 'done' });
    expect([browser.sessions, paths(), Object.keys(storedRuns()).length]).toEqual([1, ['videos'], 1]);
  });
});

describe('a tab with many runs', () => {
  it('stores the last 100, and evicts finished ones first', async () => {
    const page = openPage();
    const ids: string[] = [];
    const isFinished = (index: number) => index === 40 || index === 70;
    for (let index = 0; index < 102; index++) {
      browser.responses = { videos: [{ ...(isFinished(index) ? DONE : QUEUED), ticket: `t${index}` }] };
      ids.push(page.videos.create({ prompt: `fox ${index}` }).id);
      await settle();
    }
    expect(Object.keys(storedRuns())).toEqual(ids.filter((_, index) => !isFinished(index)));
    page.videos.create({ prompt: 'one more' });
    await settle();
    const stored = Object.keys(storedRuns());
    expect([stored.length, stored[0]]).toEqual([100, ids[1]]);
  });
});

describe('a sessionStorage', () => {
  const throwError = (error: Error) => () => {
    throw error;
  };
  it.each<[string, PropertyDescriptor]>([
    [
      'that is full',
      { value: { getItem: () => null, setItem: throwError(new DOMException('', 'QuotaExceededError')) } },
    ],
    ['that is blocked', { get: throwError(new Error('SecurityError')) }],
    ['that is missing', { value: undefined }],
  ])("%s stores nothing, but doesn't affect creates", async (_, property) => {
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, ...property });
    browser.responses = { videos: [DONE] };
    const page = openPage();
    expect(await outcomeOf(page.videos.create(PROMPT))).toMatchObject({ phase: 'done' });
    expect([page.resume(), openPage().resume()]).toEqual([[], []]);
  });

  it.each(['{"a":', 'null', '["a"]', '{"a":null}', '{"a":{"verb":"videos"}}'])(
    'that contains %s is treated as empty',
    async (value) => {
      browser.stored.set('gen-page:/api/gen', value);
      browser.responses = { videos: [DONE] };
      const page = openPage();
      expect(page.resume()).toEqual([]);
      const run = page.videos.create(PROMPT);
      expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
      expect(storedRuns()).toEqual({ [run.id]: { ticket: 't1', over: true } });
    },
  );
});
