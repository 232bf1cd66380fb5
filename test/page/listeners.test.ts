// What a page's own code and its browser may lack or throw, without harm to a run.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { browser, closeBrowser, DONE, endOf, open, openBrowser, PROMPT, paths, settled, statesOf } from './doubles.js';

beforeEach(openBrowser);
afterEach(closeBrowser);

describe('a listener that throws', () => {
  it('changes nothing for the run and for the other listeners, and its error is reported', async () => {
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
    expect(run.get()).toMatchObject({ phase: 'done', error: undefined });
    expect(states.map(({ phase }) => phase)).toEqual(['uploading', 'creating', 'done']);
    expect(reportError.mock.calls).toEqual([[broken], [broken]]);
  });

  it('ends a failed run with its own failure, also where nothing reports errors', async () => {
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

describe('a run that is over', () => {
  it('stays so, whatever a slower tab tells', async () => {
    browser.answers = { videos: [DONE] };
    const run = open().videos.create(PROMPT);
    await settled();
    const end = run.get();
    browser.channels[0]?.onmessage?.({ data: [run.id, { phase: 'waiting', uploaded: 1, status: 'processing' }] });
    expect(run.get()).toBe(end);
  });

  it('sends nothing more of what had failed, where another tab has seen its end', async () => {
    browser.answers = { videos: [new TypeError('fetch')] };
    const run = open().videos.create(PROMPT);
    await settled();
    browser.channels[0]?.onmessage?.({ data: [run.id, { phase: 'done', uploaded: 1, url: '/api/gen/file?t=f1' }] });
    await vi.advanceTimersByTimeAsync(60_000);
    expect([paths(), run.get().phase]).toEqual([['videos'], 'done']);
  });
});

it.each([
  ['does not exist', undefined],
  [
    'is blocked',
    class {
      constructor() {
        throw new DOMException('The operation is insecure.', 'SecurityError');
      }
    },
  ],
])('works where BroadcastChannel %s', async (_, channel) => {
  vi.stubGlobal('BroadcastChannel', channel);
  browser.answers = { videos: [DONE] };
  const page = open();
  const run = page.videos.create(PROMPT);
  expect(await endOf(run)).toMatchObject({ phase: 'done' });
  run.forget();
  expect(page.resume()).toEqual([]);
});
