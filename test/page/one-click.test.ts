// One click is one job: an ask that comes again before its job is created is the same run.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { browser, closeBrowser, DONE, endOf, open, openBrowser, PROMPT, paths, refusal, settled } from './doubles.js';

beforeEach(openBrowser);
afterEach(closeBrowser);

describe('an ask that comes again', () => {
  it('in the same moment, and while it is created, is the same run: a double click makes one job', async () => {
    const page = open();
    const run = page.videos.create({ ...PROMPT, seconds: 5 });
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settled();
    expect(run.get().phase).toBe('creating');
    expect(page.videos.create({ ...PROMPT, seconds: 5 })).toBe(run);
    await settled();
    expect(paths()).toEqual(['videos']);
  });

  it('while its file is uploaded is the same run', async () => {
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
    ['one field more', { ...PROMPT, seconds: 5 }],
    ['another file of the same size', { ...PROMPT, first_frame_upload_id: new Blob(['2']) }],
    ['a file in another field', { ...PROMPT, last_frame_upload_id: new Blob(['1']) }],
    ['an object in place of the file', { ...PROMPT, first_frame_upload_id: {} }],
  ])('with %s is another run', (_, other) => {
    const page = open();
    const run = page.videos.create({ ...PROMPT, first_frame_upload_id: new Blob(['1']) });
    expect(page.videos.create(other)).not.toBe(run);
  });

  it('at another verb is another run', () => {
    const page = open();
    expect(page.images.create(PROMPT)).not.toBe(page.videos.create(PROMPT));
  });

  it.each([
    ['created', () => ({ ticket: 't1', status: 'queued' })],
    ['done', () => DONE],
    ['refused', () => refusal(402)],
  ])('after its job was %s is a new run, under a key of its own', async (_, answer) => {
    browser.answers = { videos: [answer()] };
    const page = open();
    const run = page.videos.create(PROMPT);
    await settled();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
    await settled();
    expect(new Set(browser.asked.map(({ path, body }) => path.endsWith('videos') && body.key)).size).toBeGreaterThan(1);
  });

  it.each([
    ['the network failed', () => new TypeError('fetch failed')],
    ['a CDN gave up on it', () => refusal(504, '<html>')],
    ['the session had ended', () => refusal(401, { code: 'unauthorized' })],
  ])('after %s goes on under its key: the job may be made already', async (_, answer) => {
    browser.answers = { videos: [answer()] };
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

  it.each(['stop', 'forget'] as const)('after %s() is a new run', (end) => {
    const page = open();
    const run = page.videos.create(PROMPT);
    run[end]();
    expect(page.videos.create(PROMPT).id).not.toBe(run.id);
  });
});
