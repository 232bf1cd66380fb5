// The page entry point in Chromium: files, charges, connections, and ways to serve a page.
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { hasChromium } from '../support/browser.js';
import { seeded } from '../support/seeded.js';
import { DONE, hasReact, inChromium, outcomeOf, PING, until, untilTrue, untilWaiting } from './in-chromium.js';

it.runIf(process.env.CI)('has Chromium and React', () => {
  expect({ hasChromium, hasReact }).toEqual({ hasChromium: true, hasReact: true });
});

/** A form with a 5 MB PNG (a small image plus padding), submitted by a double click. */
const DOUBLE_CLICK = `(async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 300 });
  canvas.getContext('2d').fillRect(0, 0, 200, 200);
  const png = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  const files = new DataTransfer();
  files.items.add(new File([png, new Uint8Array(5_000_000 - png.size)], 'fox.png', { type: 'image/png' }));
  const form = document.createElement('form');
  const input = Object.assign(document.createElement('input'), { type: 'file', name: 'image' });
  form.append(input, document.createElement('button'));
  input.files = files.files;
  const runs = [];
  const states = [];
  form.onsubmit = (event) => {
    event.preventDefault();
    const run = gen.videos.create({ prompt: 'a fox', first_frame_upload_id: new FormData(form).get('image') });
    if (runs.push(run) === 1) run.subscribe(() => states.push(run.get()));
  };
  document.body.append(form);
  for (const _ of [1, 2]) form.querySelector('button').click();
  await runs[1].done.catch(() => {});
  return { isSameRun: runs[0] === runs[1], states };
})()`;
interface DoubleClick {
  readonly isSameRun: boolean;
  readonly states: readonly { phase: string; uploaded: number; url?: string; error?: object }[];
}

const PLAY = (url: string | undefined) => `new Promise((resolve, reject) => {
  const video = document.querySelector('video');
  video.onerror = () => reject(new Error('the video failed to load'));
  video.onseeked = () => resolve([video.duration, video.currentTime]);
  video.onloadedmetadata = () => { video.currentTime = video.duration / 2; };
  video.src = ${JSON.stringify(url)};
})`;
/** The duration and the position, in seconds. */
const PLAYED = [expect.closeTo(5, 0), expect.closeTo(2.5, 0)];

/** The strictest policy: no eval, trusted types, no frames, and same-origin media. */
const STRICT_CSP = {
  'content-security-policy':
    "default-src 'none'; script-src 'nonce-page'; connect-src 'self' http:; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

describe.skipIf(!hasChromium)('a page in Chromium', () => {
  const open = inChromium();

  it.each([
    ['to a storage that accepts requests from pages', { storage: 'other-origin' }, 0, []],
    ['through the proxy if the storage rejects requests from pages', { storage: 'other-origin' }, 9, ['POST bytes']],
    ['through the proxy if the service is the storage', { storage: 'same-origin' }, 0, ['POST bytes']],
    ['through a proxy on another origin', { storage: 'same-origin', isOtherOrigin: true }, 0, ['POST bytes']],
    ['with a strict content security policy', { storage: 'other-origin', headers: STRICT_CSP }, 0, []],
  ] as const)(
    'uploads a file once after a double click, %s, and plays the video',
    async (_, options, rejected, relayed) => {
      // The bytes need real time. On a faster clock, a busy machine's request would time out.
      const { app, tab } = await open({ ...options, jobMs: 300, speed: 10 });
      const match = { method: 'OPTIONS', path: '/storage/*' };
      if (rejected > 0) app.sandbox.faults.add({ match, status: 403, times: rejected });
      const urls: string[] = [];
      const violations: string[] = [];
      tab.on('request', (request) => urls.push(request.url()));
      tab.on(
        'console',
        (message) => /Content.Security.Policy/i.test(message.text()) && violations.push(message.text()),
      );
      const { isSameRun, states } = await tab.evaluate<DoubleClick>(DOUBLE_CLICK);
      expect(isSameRun).toBe(true);
      const last = states.at(-1);
      expect(last).toMatchObject({ phase: 'done', uploaded: 1, url: expect.stringContaining('/api/gen/file?t=') });
      expect(states.filter(({ phase, uploaded }) => phase === 'uploading' && uploaded > 0)).not.toEqual([]);
      const requests = app.requests.filter((request) => !/^OPTIONS|watch$/.test(request));
      expect(requests).toEqual(['POST session', 'POST upload', ...relayed, 'POST uploaded', 'POST videos']);
      expect(await tab.evaluate(PLAY(last?.url))).toEqual(PLAYED);
      // The page never receives the API key.
      expect(urls.filter((url) => url.includes(app.sandbox.apiKey))).toEqual([]);
      expect([app.sandbox.jobs.length, violations]).toEqual([1, []]);
    },
  );

  it('creates one job despite reloads at random moments', async () => {
    const { app, tab } = await open({ jobMs: 2_000, speed: 1 });
    const random = seeded(7);
    // Reload only after the run is stored. Otherwise, no create would be sent.
    await tab.evaluate(untilTrue(`gen.videos.create({ prompt: 'a fox over reloads' })`, '!run.get().isCancelable'));
    for (let reload = 0; reload < 6; reload++) {
      await tab.evaluate(`new Promise((resolve) => setTimeout(resolve, ${Math.floor(random() * 500)}))`);
      await tab.goto(app.url);
    }
    expect(await tab.evaluate(outcomeOf('runs[0]'))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(1);
    await tab.goto(app.url);
    expect(await tab.evaluate(outcomeOf('runs[0]'))).toEqual(DONE);
    await tab.evaluate('runs[0].forget()');
    await tab.goto(app.url);
    expect(await tab.evaluate('runs.length')).toBe(0);
  });

  it.each([6, 12])('sends one request for %i runs, and leaves connections free for others', async (count) => {
    const { app, tab } = await open({ jobMs: 60_000, speed: 1 });
    const prompts = JSON.stringify(Array.from({ length: count }, (_, index) => `fox ${index}`));
    await tab.evaluate(`Promise.all(${prompts}.map((prompt) => ${untilWaiting('gen.videos.create({ prompt })')}))`);
    await until(() => expect(app.openRequests()).toBe(1));
    expect(await tab.evaluate<number>(PING)).toBeLessThan(1_000);
    expect([app.openRequests(), app.sandbox.jobs.length]).toEqual([1, count]);
  });

  it('sends no create and no poll after a reload with finished runs', async () => {
    const { app, tab, posts } = await open({ jobMs: 100, speed: 10 });
    const phases = (runs: string) =>
      tab.evaluate(`Promise.all(${runs}.map(({ done }) => done)).then((states) => states.map(({ phase }) => phase))`);
    const done = ['done', 'done', 'done'];
    expect(await phases(`['a fox', 'a crow', 'a hare'].map((prompt) => gen.videos.create({ prompt }))`)).toEqual(done);
    const requestsBefore = app.sandbox.requests.length;
    await tab.goto(app.url);
    expect(await phases('runs')).toEqual(done);
    expect([app.sandbox.requests.length - requestsBefore, posts('videos'), posts('session')]).toEqual([0, 3, 1]);
  });

  const lan = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address;
  it.runIf(lan)("works over plain HTTP at this machine's network address", async () => {
    const { app, tab } = await open({ jobMs: 200, speed: 10 });
    await tab.goto(app.url.replace('127.0.0.1', lan ?? ''));
    expect(await tab.evaluate('isSecureContext')).toBe(false);
    expect(await tab.evaluate(outcomeOf(`gen.videos.create({ prompt: 'a fox' })`))).toEqual(DONE);
  });

  it('plays a video whose link is opened directly', async () => {
    const { app, tab } = await open({ jobMs: 200, speed: 10 });
    const job = await app.client.videos.createAndWait({ prompt: 'a fox' });
    await tab.goto(`${app.url}api/gen/${await app.proxy.link(job, { expiresInMs: 60_000 })}`);
    await until(async () =>
      expect(await tab.evaluate("document.querySelector('video')?.readyState ?? 0")).toBeGreaterThan(0),
    );
  });
});
