// Identity of runs: repeated creates, and a tab's stored runs after a reload, which belong to their user.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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

beforeEach(openBrowser);
afterEach(closeBrowser);

describe('a repeated create', () => {
  it('while it is in flight returns the same run, so a double click creates one job', async () => {
    const page = open();
    const run = page.videos.create({ ...PROMPT, seconds: 5 });
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settled();
    expect(run.get().phase).toBe('creating');
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settled();
    expect(paths()).toEqual(['videos']);
  });

  it('during its upload returns the same run', async () => {
    browser.bytesStatus = { POST: 'pending' };
    browser.answers = { upload: [{ put: 'p1' }] };
    const page = open();
    const file = new Blob(['1']);
    const run = page.videos.create({ ...PROMPT, upload_ids: [file] });
    await settled();
    expect(run.get().phase).toBe('uploading');
    expect(page.videos.create({ ...PROMPT, upload_ids: [file] })).toBe(run);
    await settled();
    expect(browser.sends).toHaveLength(1);
  });

  it.each([
    ['another prompt', { prompt: 'a crow' }],
    ['an additional field', { ...PROMPT, seconds: 5 }],
    ['another file of the same size', { ...PROMPT, first_frame_upload_id: new Blob(['2']) }],
    ['a file in another field', { ...PROMPT, last_frame_upload_id: new Blob(['1']) }],
    ['an object instead of the file', { ...PROMPT, first_frame_upload_id: {} }],
  ])('with %s returns another run', (_, other) => {
    const page = open();
    const run = page.videos.create({ ...PROMPT, first_frame_upload_id: new Blob(['1']) });
    expect(page.videos.create(other)).not.toBe(run);
  });

  it('with another verb returns another run', () => {
    const page = open();
    expect(page.images.create(PROMPT)).not.toBe(page.videos.create(PROMPT));
  });

  it.each([
    ['created', () => ({ ticket: 't1', status: 'queued' })],
    ['completed', () => DONE],
    ['rejected', () => errorResponse(402)],
  ])('after its job was %s returns a new run with a new key', async (_, response) => {
    browser.answers = { videos: [response()] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
    await settled();
    expect(new Set(browser.asked.map(({ path, body }) => path.endsWith('videos') && body.key)).size).toBeGreaterThan(1);
  });

  it.each([
    ['the network failed', () => new TypeError('fetch failed')],
    ['a CDN timed out', () => errorResponse(504, '<html>')],
    ['the session had ended', () => errorResponse(401, { code: 'unauthorized' })],
  ])('after %s reuses its key, because the job may exist', async (_, response) => {
    browser.answers = { videos: [response()] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    await vi.advanceTimersByTimeAsync(31_000);
    expect(run.get().phase).toBe('failed');
    browser.answers = { videos: [DONE] };
    const again = page.videos.create(PROMPT);
    expect(page.videos.create(PROMPT)).toBe(again);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
    expect(new Set(browser.asked.map(({ body }) => body.key))).toEqual(new Set([run.id]));
  });

  it.each(['stop', 'forget'] as const)('after %s() returns a new run', (end) => {
    const page = open();
    const run = page.videos.create(PROMPT);
    run[end]();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
  });
});

describe('a run whose job may still be running', () => {
  it('is restarted by resume() after a create without a session, with its key and session', async () => {
    browser.answers = { videos: [errorResponse(401)] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(run.get().phase).toBe('failed');
    browser.answers = { videos: [DONE] };
    const [again] = page.resume();
    expect([again?.id, again === run, again?.get().phase]).toEqual([run.id, false, 'creating']);
    expect(page.resume()).toEqual([again]);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
    expect(browser.asked.at(-1)?.body).toEqual({ key: run.id, input: PROMPT, session: 's1' });
    expect(run.get().phase).toBe('failed');
  });

  it('is followed again by resume() after a wait without a session, with its ticket', async () => {
    browser.answers = { videos: [{ ticket: 't1', status: 'queued' }], watch: [errorResponse(401), DONE] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(run.get().phase).toBe('failed');
    const [again] = page.resume();
    expect([again?.id, again === run, again?.get().phase]).toEqual([run.id, false, 'waiting']);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
    expect(paths()).toEqual(['videos', 'watch', 'watch']);
  });

  it('can be removed by its old and its new object', async () => {
    browser.answers = { videos: [errorResponse(401)] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    const [again] = page.resume();
    run.forget();
    expect(await endOf(again)).toMatchObject({ code: 'stopped' });
    expect(page.resume()).toEqual([]);
  });

  it('is restarted by watch()', async () => {
    browser.answers = { watch: [errorResponse(401), DONE] };
    const page = open();
    expect(await endOf(page.watch('t1'))).toMatchObject({ code: 'no_such' });
    expect(await endOf(page.watch('t1'))).toMatchObject({ phase: 'done' });
  });
});

it.each([
  ['done', { url: 'file?t=f1' }],
  ['failed', { error: { code: 'generation_rejected', message: 'No.' } }],
])('a run whose job is %s is returned by resume() without a request', async (phase, end) => {
  browser.answers = { videos: [{ ticket: 't1', status: 'over', ...end }] };
  const page = open();
  const run = page.videos.create(PROMPT);
  await settled();
  expect(run.get().phase).toBe(phase);
  expect(page.resume()).toEqual([run]);
  await settled();
  expect(paths()).toEqual(['videos']);
});

describe.each(['stop', 'forget'] as const)('%s() during an upload', (end) => {
  const direct = { url: 'https://bucket/1', headers: {} };
  const ask = () => ({ first_frame_upload_id: new Blob(['1']) });

  it("doesn't send the file through the proxy", async () => {
    browser.bytesStatus = { PUT: 'pending' };
    browser.answers = { upload: [{ put: 'p1', direct }], uploaded: [{ upload: 'u1' }], videos: [DONE] };
    const run = open().videos.create(ask());
    await settled();
    run[end]();
    await settled();
    expect(browser.sends.map(({ method, isAborted }) => [method, isAborted])).toEqual([['PUT', true]]);
    expect(paths()).toEqual(['upload']);
  });

  it("sends no bytes if the upload hasn't started", async () => {
    let resolveUpload = (_: object) => {};
    browser.answers = { upload: [new Promise<object>((resolve) => (resolveUpload = resolve))] };
    const run = open().videos.create(ask());
    await settled();
    run[end]();
    resolveUpload({ put: 'p1', direct });
    await settled();
    expect([browser.sends, paths()]).toEqual([[], ['upload']]);
  });
});

const QUEUED = { ticket: 't1', status: 'queued', againMs: 60_000 };
const QUEUED_NOW = { ticket: 't1', status: 'queued' };
const OTHER_USER = { code: 'other_user', message: 'This was requested in another session.' };
const NOT_FOUND = { code: 'not_found', message: 'This does not exist.' };

/** Creates a run whose create is in flight or has a response, then reloads the tab. */
async function leftRun(responses: (typeof browser)['answers']) {
  browser.answers = responses;
  const run = open().videos.create(PROMPT);
  await settled();
  browser.asked.length = 0;
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
      const run = await leftRun({ videos: [response], watch: [DONE] });
      expect(JSON.stringify(kept())).not.toContain(PROMPT.prompt);
      const [again] = open().resume();
      expect(again?.get()).toEqual({ phase: 'waiting', isCancelable: false, uploaded: 1 });
      expect(await endOf(again)).toMatchObject({ phase: 'done', uploaded: 1, url: '/api/gen/file?t=f1' });
      expect([again?.id, browser.asked]).toEqual([
        run.id,
        [{ path: '/api/gen/watch', body: { jobs: [{ ticket: 't1' }], hold: true } }],
      ]);
    },
  );

  it('a run whose create has no response retries it with its own session', async () => {
    const run = await leftRun({});
    expect(kept()).toEqual({ [run.id]: { verb: 'videos', session: 's1', input: PROMPT } });
    browser.answers = { videos: [DONE] };
    expect(await endOf(open().resume()[0])).toMatchObject({ phase: 'done' });
    const body = { key: run.id, input: PROMPT, session: 's1' };
    expect([browser.asked, browser.sessions]).toEqual([[{ path: '/api/gen/videos', body }], 1]);
  });

  it.each([
    ['whose create got no response', {}, { videos: [errorResponse(403, OTHER_USER)] }, OTHER_USER],
    ['that was waiting', { videos: [QUEUED] }, { watch: [errorResponse(404, NOT_FOUND)] }, NOT_FOUND],
    ['that was completed', { videos: [DONE] }, { watch: [errorResponse(404, NOT_FOUND)] }, NOT_FOUND],
  ])('a run %s is removed without being shown if another user has signed in', async (_, before, after, error) => {
    await leftRun(before);
    browser.answers = after;
    const page = open();
    const [run] = page.resume();
    const states = run ? statesOf(run) : [];
    expect(await endOf(run)).toEqual(error);
    expect(states.map(({ phase, status, url, tokens }) => [phase, status, url, tokens])).toEqual([
      ...states.slice(1).map(() => [expect.stringMatching(/^(creating|waiting)$/), undefined, undefined, undefined]),
      ['failed', undefined, undefined, undefined],
    ]);
    expect([kept(), page.resume(), open().resume(), browser.asked.length]).toEqual([{}, [], [], 1]);
  });

  it.each([
    ['401', errorResponse(401, { code: 'unauthorized', message: 'Sign in first.' })],
    ['a 404 from another server', errorResponse(404, '<html>')],
  ])('a run whose wait gets %s is retained', async (_, response) => {
    const run = await leftRun({ videos: [QUEUED] });
    browser.answers = { watch: [response] };
    const [again] = open().resume();
    await endOf(again);
    expect(again?.get().phase).toBe('failed');
    expect(Object.keys(kept())).toEqual([run.id]);
  });
});

describe('the session ticket', () => {
  it('is requested once, before the first create', async () => {
    browser.answers = { videos: [DONE], watch: [DONE] };
    const page = open();
    page.watch('t9');
    page.resume();
    await settled();
    expect(browser.sessions).toBe(0);
    for (const prompt of ['a fox', 'a crow', 'a hare']) page.videos.create({ prompt });
    await settled();
    page.videos.create({ prompt: 'a wolf' });
    await settled();
    expect(browser.sessions).toBe(1);
    expect(browser.asked.slice(1).map(({ body }) => body.session)).toEqual(['s1', 's1', 's1', 's1']);
  });

  it('is retained after a rejection, so no later click creates a job for the next user', async () => {
    browser.answers = { videos: [errorResponse(403, OTHER_USER)] };
    const page = open();
    for (let click = 0; click < 2; click++) expect(await endOf(page.videos.create(PROMPT))).toEqual(OTHER_USER);
    expect(browser.asked.map(({ body }) => body.session)).toEqual(['s1', 's1']);
  });

  it.each([
    ['a wait was rejected', { videos: [QUEUED_NOW], watch: [errorResponse(404, NOT_FOUND)] }],
    ['a create has failed for half a minute', { videos: [errorResponse(503)] }],
  ])('is retained if %s, so the tab creates nothing for a user who signed in elsewhere', async (_, responses) => {
    browser.answers = responses;
    const page = open();
    page.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(31_000);
    browser.answers = { videos: [errorResponse(403, OTHER_USER)] };
    expect(await endOf(page.videos.create({ prompt: 'a crow' }))).toEqual(OTHER_USER);
    expect([browser.sessions, browser.asked.at(-1)?.body.session]).toEqual([1, 's1']);
  });

  it('is requested again if the network fails, before anything is uploaded', async () => {
    const responses = [new TypeError('fetch'), errorResponse(200, '<html>'), { ticket: 'sA' }];
    browser.answers = { session: responses, videos: [DONE] };
    const run = open().videos.create({ first_frame_upload_id: new Blob([]) });
    browser.answers.upload = [{ put: 'p1' }];
    browser.answers.uploaded = [{ upload: 'u1' }];
    await vi.advanceTimersByTimeAsync(1_000);
    expect(paths()).toEqual(['session', 'session']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
    expect(browser.asked.at(-1)?.body).toMatchObject({ session: 'sA' });
  });

  it('of a stopped run is reused by the next one', async () => {
    browser.answers = { videos: [DONE] };
    const page = open();
    const left = page.videos.create(PROMPT);
    left.stop();
    expect(await endOf(page.videos.create(PROMPT))).toMatchObject({ phase: 'done' });
    expect([browser.sessions, paths(), Object.keys(kept()).length]).toEqual([1, ['videos'], 1]);
  });
});

describe('with many runs', () => {
  it('retains the last 100, and evicts finished ones first', async () => {
    const page = open();
    const ids: string[] = [];
    for (let made = 0; made < 102; made++) {
      const isOver = made === 40 || made === 70;
      browser.answers = { videos: [{ ...(isOver ? DONE : QUEUED), ticket: `t${made}` }] };
      ids.push(page.videos.create({ prompt: `fox ${made}` }).id);
      await settled();
    }
    expect(Object.keys(kept())).toEqual(ids.filter((_, made) => made !== 40 && made !== 70));
    page.videos.create({ prompt: 'one more' });
    await settled();
    const left = Object.keys(kept());
    expect([left.length, left.includes(ids[0] ?? ''), left.includes(ids[1] ?? '')]).toEqual([100, false, true]);
  });
});

describe('a sessionStorage', () => {
  const throwing = (error: Error) => () => {
    throw error;
  };
  it.each<[string, PropertyDescriptor]>([
    ['that is full', { value: { getItem: () => null, setItem: throwing(new DOMException('', 'QuotaExceededError')) } }],
    ['that is blocked', { get: throwing(new Error('SecurityError')) }],
    ['that is missing', { value: undefined }],
  ])("%s stores nothing, but doesn't affect creates", async (_, property) => {
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, ...property });
    browser.answers = { videos: [DONE] };
    const page = open();
    expect(await endOf(page.videos.create(PROMPT))).toMatchObject({ phase: 'done' });
    expect([page.resume(), open().resume()]).toEqual([[], []]);
  });

  it.each(['{"a":', 'null', '["a"]', '{"a":null}', '{"a":{"verb":"videos"}}'])(
    'that contains %s is treated as empty',
    async (value) => {
      browser.stored.set('gen-page:/api/gen', value);
      browser.answers = { videos: [DONE] };
      const page = open();
      expect(page.resume()).toEqual([]);
      const run = page.videos.create(PROMPT);
      expect(await endOf(run)).toMatchObject({ phase: 'done' });
      expect(kept()).toEqual({ [run.id]: { ticket: 't1', over: true } });
    },
  );
});
