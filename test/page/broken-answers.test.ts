// Answers that are no answers: cut off, of a login page, of another server. Nothing is paid twice, and nothing is asked in a storm.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { browser, closeBrowser, DONE, endOf, open, openBrowser, PROMPT, paths, refusal, settled } from './doubles.js';

beforeEach(openBrowser);
afterEach(closeBrowser);

/** A 200 whose body ends before it is whole, as where a connection or a proxy breaks. */
const cutOff = () =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"ticket":"t1","sta'));
        controller.error(new TypeError('terminated'));
      },
    }),
  );

describe('an answer that says nothing', () => {
  it.each([
    ['is cut off after its 200', cutOff],
    ['ends in the middle', () => refusal(200, '{"ticket":"t1"')],
    ['is the HTML of a login page', () => refusal(200, '<!doctype html><form>Sign in</form>')],
    ['is JSON but no object', () => refusal(200, '[]')],
    ['is null', () => refusal(200, 'null')],
    ['is a text', () => refusal(200, '"t1"')],
    ['has no ticket', () => refusal(200, '{"status":"queued"}')],
    ['is empty', () => new Response(null, { status: 204 })],
  ])('and %s has a create repeated under its key: the job is made once', async (_, answer) => {
    browser.answers = { videos: [answer(), DONE] };
    const run = open().videos.create(PROMPT);
    await settled();
    expect(run.get().phase).toBe('creating');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
    const body = { key: run.id, ask: PROMPT, session: 's1' };
    expect(browser.asked.map(({ body }) => body)).toEqual([body, body]);
  });

  it('fails a create as a broken connection does, when every answer is one', async () => {
    browser.answers = { videos: [refusal(200, '<html>')] };
    const run = open().videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(31_000);
    expect(await endOf(run)).toEqual({ code: 'network', message: 'The connection failed. Try again.' });
    expect(paths()).toHaveLength(6);
  });

  it.each([
    ['HTML', '<html>'],
    ['an object without a status', '{}'],
  ])('has a wait on %s pause longer and longer, until the proxy answers again', async (_, body) => {
    browser.answers = { watch: [refusal(200, body)] };
    const run = open().watch('t1');
    await vi.advanceTimersByTimeAsync(31_000);
    expect(paths()).toHaveLength(6);
    browser.answers = { watch: [DONE] };
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await endOf(run)).toMatchObject({ phase: 'done' });
  });

  it.each([
    ['upload', { upload: [refusal(200, '<html>')] }],
    ['uploaded', { upload: [{ put: 'p1' }], uploaded: [refusal(200, '{}')] }],
  ])('ends an upload at %s, before anything is paid', async (path, answers) => {
    browser.answers = answers;
    const run = open().videos.create({ first_frame_upload_id: new Blob(['1']) });
    expect(await endOf(run)).toMatchObject({ code: 'network' });
    expect(paths().at(-1)).toBe(path);
  });

  it('to a refusal that is no object leaves the status of the refusal: it is not repeated', async () => {
    browser.answers = { videos: [refusal(403, 'null')] };
    const run = open().videos.create(PROMPT);
    expect(await endOf(run)).toEqual({ code: 'service_error', message: 'Try again later.' });
    expect(paths()).toEqual(['videos']);
  });
});

describe('a wait whose answers have no news', () => {
  it.each([
    ['the same status', ['processing']],
    ['two statuses in turn, as of replicas that disagree', ['processing', 'queued']],
  ])('asks once a second while each comes at once with %s', async (_, statuses) => {
    const answers = Array.from({ length: 500 }, (_, index) => ({ status: statuses[index % statuses.length] }));
    browser.answers = { watch: [...answers, new Promise(() => {})] };
    open().watch('t1');
    await settled();
    const atFirst = paths().length;
    expect(atFirst).toBeLessThanOrEqual(statuses.length + 1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(paths().length - atFirst).toBe(10);
  });

  it('asks again at once after one that was held for a second or more', async () => {
    const held = new Promise((resolve) => setTimeout(() => resolve({ status: 'processing' }), 20_000));
    browser.answers = { watch: [{ status: 'processing' }, held, DONE] };
    const run = open().watch('t1');
    await vi.advanceTimersByTimeAsync(19_999);
    expect(paths()).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(run.get().phase).toBe('done');
  });
});
