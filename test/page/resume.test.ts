// What resume() and watch() give back in a page that was not loaded again, and what stop() leaves unsent.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { browser, closeBrowser, DONE, endOf, open, openBrowser, PROMPT, paths, refusal, settled } from './doubles.js';

beforeEach(openBrowser);
afterEach(closeBrowser);

describe('a run whose job is not known to be over', () => {
  it.each([
    ['after a network that failed for half a minute', { videos: [new TypeError('fetch')] }],
    ['after a create without a session', { videos: [refusal(401)] }],
  ])('%s is begun anew by resume(), under its key and in its session', async (_, answers) => {
    browser.answers = answers;
    const page = open();
    const run = page.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(31_000);
    expect(run.get().phase).toBe('failed');
    browser.answers = { videos: [DONE] };
    const [again] = page.resume();
    expect([again?.id, again === run, again?.get().phase]).toEqual([run.id, false, 'creating']);
    expect(page.resume()).toEqual([again]);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
    expect(browser.asked.at(-1)?.body).toEqual({ key: run.id, ask: PROMPT, session: 's1' });
    expect(run.get().phase).toBe('failed');
  });

  it('after a wait without a session is followed anew by resume(), by its ticket', async () => {
    browser.answers = { videos: [{ ticket: 't1', status: 'queued' }], watch: [refusal(401), DONE] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(run.get().phase).toBe('failed');
    const [again] = page.resume();
    expect([again?.id, again === run, again?.get().phase]).toEqual([run.id, false, 'waiting']);
    expect(await endOf(again)).toMatchObject({ phase: 'done' });
    expect(paths()).toEqual(['videos', 'watch', 'watch']);
  });

  it('is forgotten as what it was and as what it is now', async () => {
    browser.answers = { videos: [refusal(401)] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    const [again] = page.resume();
    run.forget();
    expect(await endOf(again)).toMatchObject({ code: 'stopped' });
    expect(page.resume()).toEqual([]);
  });

  it('is begun anew by watch()', async () => {
    browser.answers = { watch: [refusal(401), DONE] };
    const page = open();
    expect(await endOf(page.watch('t1'))).toMatchObject({ code: 'no_such' });
    expect(await endOf(page.watch('t1'))).toMatchObject({ phase: 'done' });
  });
});

it.each([
  ['done', { file: 'f1' }],
  ['failed', { error: { code: 'generation_rejected', message: 'No.' } }],
])('a run whose job is %s is what resume() returns, and asks no more', async (phase, end) => {
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

  it('sends the file on no other way', async () => {
    browser.bytesStatus = { PUT: 'pending' };
    browser.answers = { upload: [{ put: 'p1', direct }], uploaded: [{ upload: 'u1' }], videos: [DONE] };
    const run = open().videos.create(ask());
    await settled();
    run[end]();
    await settled();
    expect(browser.sends.map(({ method, isAborted }) => [method, isAborted])).toEqual([['PUT', true]]);
    expect(paths()).toEqual(['upload']);
  });

  it('sends no byte where it has not begun to', async () => {
    let begun = (_: object) => {};
    browser.answers = { upload: [new Promise<object>((resolve) => (begun = resolve))] };
    const run = open().videos.create(ask());
    await settled();
    run[end]();
    begun({ put: 'p1', direct });
    await settled();
    expect([browser.sends, paths()]).toEqual([[], ['upload']]);
  });
});
