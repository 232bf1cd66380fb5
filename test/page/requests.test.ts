// A page's requests: retries of creates, one shared watch, and none on a server.
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
  storedRuns,
} from './fake-browser.js';

fakeBrowserPerTest();

const creates = () => browser.requests.filter(({ path }) => path.endsWith('videos'));

it('stop() and an equal create() in one tick share one key while the POST is in flight', async () => {
  const page = openPage();
  const first = page.videos.create(PROMPT);
  await settle();
  first.stop();
  const second = page.videos.create(PROMPT);
  await settle();
  expect([second.id, new Set(creates().map(({ body }) => body.key)).size]).toEqual([first.id, 1]);
});

it('a create stopped in flight retains its key if the connection fails', async () => {
  const { promise, reject } = deferred<object>();
  browser.responses = { videos: [promise, DONE] };
  const page = openPage();
  const run = page.videos.create(PROMPT);
  await settle();
  run.stop();
  reject(new TypeError('fetch failed'));
  await settle();
  expect(Object.keys(storedRuns())).toEqual([run.id]);
  expect(page.videos.create(PROMPT).id).toBe(run.id);
});

describe('a rejected create', () => {
  const REJECTED = { code: 'no_such', message: 'No.' };
  const serviceError = (status: number) => ({
    code: 'service_error',
    message: `/api/gen/videos returned ${status}.`,
  });
  it.each([
    [402, REJECTED, REJECTED, false],
    [400, REJECTED, REJECTED, false],
    [500, REJECTED, REJECTED, false],
    [502, REJECTED, REJECTED, false],
    [401, REJECTED, REJECTED, true],
    [429, REJECTED, REJECTED, true],
    [401, {}, serviceError(401), true],
    [403, 'null', serviceError(403), false],
    [404, '<html>', serviceError(404), false],
  ])(
    'with %i and %j fails its run immediately with %j, stored for resume(): %j',
    async (status, body, error, isStored) => {
      browser.responses = {
        videos: [errorResponse(status, typeof body === 'string' ? body : { retry: false, ...body })],
      };
      const run = openPage().videos.create(PROMPT);
      expect(await outcomeOf(run)).toEqual(error);
      expect(run.get()).toMatchObject({ phase: 'failed', error });
      await vi.advanceTimersByTimeAsync(60_000);
      expect([creates().length, Object.keys(storedRuns())]).toEqual([1, isStored ? [run.id] : []]);
    },
  );

  it('without a code, as from a reverse proxy, is retried', async () => {
    browser.responses = { videos: [errorResponse(502, '<html>'), DONE] };
    const run = openPage().videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
  });
});

it('a run is cancelable until it sends its create, and forget() then sends nothing', async () => {
  const page = openPage();
  const run = page.videos.create(PROMPT);
  expect(run.get().isCancelable).toBe(true);
  run.forget();
  await settle();
  expect([creates(), storedRuns()]).toEqual([[], {}]);
  const second = page.videos.create(PROMPT);
  await settle();
  expect(second.get().isCancelable).toBe(false);
});

it('twelve waiting runs share one request, and a new run joins the next one', async () => {
  const page = openPage();
  for (let index = 0; index < 12; index++) page.watch(`t${index}`);
  await settle();
  page.watch('t12');
  await settle();
  expect(browser.requests.map(({ body }) => (body.jobs as unknown[]).length)).toEqual([12, 13]);
  expect(browser.xhrs.map(({ isAborted }) => isAborted)).toEqual([true, false]);
});

it('a hidden tab holds no request', async () => {
  vi.stubGlobal('document', { hidden: true });
  openPage().watch('t1');
  await settle();
  expect(browser.requests[0]?.body.hold).toBe(false);
});

it('two hundred tickets take turns, a hundred per request', async () => {
  browser.responses = { watch: [DONE] };
  const page = openPage();
  const runs = Array.from({ length: 200 }, (_, index) => page.watch(`t${index}`));
  await Promise.all(runs.map(({ done }) => done));
  expect(paths()).toEqual(['watch', 'watch']);
});

it('on a server, a page sends no request, sets no timer, and registers no run', async () => {
  Reflect.deleteProperty(globalThis, 'location');
  const page = openPage();
  const runs = [page.watch('t1'), page.watch('t1'), page.videos.create(PROMPT)];
  await vi.advanceTimersByTimeAsync(60_000);
  expect(runs.map((run) => run.get().phase)).toEqual(['waiting', 'waiting', 'waiting']);
  expect([runs[0] === runs[1], browser.requests, browser.sessions, vi.getTimerCount()]).toEqual([false, [], 0, 0]);
});

it('outside a browser, a page uses fetch with an absolute URL', async () => {
  Reflect.deleteProperty(globalThis, 'location');
  Reflect.deleteProperty(globalThis, 'XMLHttpRequest');
  browser.responses = { 'https://app.test/session': [{ ticket: 's1' }], 'https://app.test/videos': [DONE] };
  const run = openPage('https://app.test').videos.create(PROMPT);
  expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
});

it('a page needs no API that requires a secure context', async () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal('crypto', { getRandomValues: getRandomValues.bind(crypto) });
  browser.responses = { videos: [DONE] };
  const run = openPage().videos.create(PROMPT);
  expect(await outcomeOf(run)).toMatchObject({ phase: 'done' });
  expect(run.id).toMatch(/^[\w-]{16,128}$/);
});

it("a page relays bytes with credentials, and reports the proxy's error", async () => {
  browser.uploadStatus = { PUT: 403, POST: 401 };
  browser.uploadResponse = { code: 'unauthorized', message: 'Sign in first.', retry: false };
  browser.responses = { upload: [{ put: 'p1', direct: { url: 'https://bucket/1', headers: {} } }] };
  const run = openPage().videos.create({ first_frame_upload_id: new Blob(['1']) });
  expect(await outcomeOf(run)).toEqual({ code: 'unauthorized', message: 'Sign in first.' });
  expect(browser.uploads.map(({ method, withCredentials }) => [method, withCredentials])).toEqual([
    ['PUT', false],
    ['POST', true],
  ]);
});
