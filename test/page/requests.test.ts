// A page pays only for creates, holds one request, and does nothing on a server.
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
} from './fake-browser.js';

beforeAll(quiet);

beforeEach(openBrowser);
afterEach(closeBrowser);

const creates = () => browser.asked.filter(({ path }) => path.endsWith('videos'));

it('stop() and an equal create() in one tick share one key while the POST is in flight', async () => {
  const page = open();
  const first = page.videos.create(PROMPT);
  await settled();
  first.stop();
  const second = page.videos.create(PROMPT);
  await settled();
  expect([second.id, new Set(creates().map(({ body }) => body.key)).size]).toEqual([first.id, 1]);
});

it('a create stopped in flight retains its key if the connection fails', async () => {
  let fail = (_: Error) => {};
  browser.answers = { videos: [new Promise<object>((_, reject) => (fail = reject)), DONE] };
  const page = open();
  const run = page.videos.create(PROMPT);
  await settled();
  run.stop();
  fail(new TypeError('fetch failed'));
  await settled();
  expect(Object.keys(kept())).toEqual([run.id]);
  expect(page.videos.create(PROMPT).id).toBe(run.id);
});

describe('a rejected create', () => {
  it.each([
    [402, false],
    [400, false],
    [500, false],
    [502, false],
    [401, true],
    [429, true],
  ])('with %i is sent once, and is retained for resume(): %j', async (status, isKept) => {
    browser.answers = { videos: [errorResponse(status, { code: 'no_such', message: 'No.', retry: false })] };
    const run = open().videos.create(PROMPT);
    expect(await endOf(run)).toEqual({ code: 'no_such', message: 'No.' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect([creates().length, Object.keys(kept())]).toEqual([1, isKept ? [run.id] : []]);
  });

  it("without a code, as from a reverse proxy, isn't a rejection if it is temporary", async () => {
    browser.answers = { videos: [errorResponse(502, '<html>'), DONE] };
    const run = open().videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
  });
});

it('a run indicates whether it can be canceled for free, and then forget() sends nothing', async () => {
  const page = open();
  const run = page.videos.create(PROMPT);
  expect(run.get().isCancelable).toBe(true);
  run.forget();
  await settled();
  expect([creates(), kept()]).toEqual([[], {}]);
  const sent = page.videos.create(PROMPT);
  await settled();
  expect(sent.get().isCancelable).toBe(false);
});

it('twelve waiting runs share one request, and a new run joins the next one', async () => {
  const page = open();
  for (let at = 0; at < 12; at++) page.watch(`t${at}`);
  await settled();
  page.watch('t12');
  await settled();
  expect(browser.asked.map(({ body }) => (body.jobs as unknown[]).length)).toEqual([12, 13]);
  expect(browser.requests.map(({ isAborted }) => isAborted)).toEqual([true, false]);
});

it('a hidden tab holds no request', async () => {
  vi.stubGlobal('document', { hidden: true });
  open().watch('t1');
  await settled();
  expect(browser.asked[0]?.body.hold).toBe(false);
});

it('each request contains a hundred of two hundred tickets, in turns', async () => {
  browser.answers = { watch: [DONE] };
  const page = open();
  const runs = Array.from({ length: 200 }, (_, at) => page.watch(`t${at}`));
  await Promise.all(runs.map(({ done }) => done));
  expect(paths()).toEqual(['watch', 'watch']);
});

it('on a server, a page sends no request, sets no timer, and registers no run', async () => {
  Reflect.deleteProperty(globalThis, 'location');
  const page = open();
  const runs = [page.watch('t1'), page.watch('t1'), page.videos.create(PROMPT)];
  await vi.advanceTimersByTimeAsync(60_000);
  expect(runs.map((run) => run.get().phase)).toEqual(['waiting', 'waiting', 'creating']);
  expect([runs[0] === runs[1], browser.asked, browser.sessions, vi.getTimerCount()]).toEqual([false, [], 0, 0]);
});

it('outside a browser, a page uses fetch with an absolute URL', async () => {
  Reflect.deleteProperty(globalThis, 'location');
  Reflect.deleteProperty(globalThis, 'XMLHttpRequest');
  browser.answers = { 'https://app.test/session': [{ ticket: 's1' }], 'https://app.test/videos': [DONE] };
  const run = open('https://app.test').videos.create(PROMPT);
  expect(await endOf(run)).toMatchObject({ phase: 'done' });
});

it('a page needs no APIs that require a secure context', async () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal('crypto', { getRandomValues: getRandomValues.bind(crypto) });
  browser.answers = { videos: [DONE] };
  const run = open().videos.create(PROMPT);
  expect(await endOf(run)).toMatchObject({ phase: 'done' });
  expect(run.id).toMatch(/^[\w-]{16,128}$/);
});

it('a page relays bytes with credentials, and reports why the proxy rejected them', async () => {
  browser.bytesStatus = { PUT: 403, POST: 401 };
  browser.bytesReply = { code: 'unauthorized', message: 'Sign in first.', retry: false };
  browser.answers = { upload: [{ put: 'p1', direct: { url: 'https://bucket/1', headers: {} } }] };
  const run = open().videos.create({ first_frame_upload_id: new Blob(['1']) });
  expect(await endOf(run)).toEqual({ code: 'unauthorized', message: 'Sign in first.' });
  expect(browser.sends.map(({ method, withCredentials }) => [method, withCredentials])).toEqual([
    ['PUT', false],
    ['POST', true],
  ]);
});
