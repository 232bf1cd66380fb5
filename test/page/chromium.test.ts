// The page part and the React hook in a real browser. React is installed for test/runtimes.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Browser, hasChromium, launch, type Page } from '../sandbox-doors/browser.js';
import { PATIENCE_MS } from '../support/patience.js';
import { seeded } from '../support/seeded.js';
import { bundled, type PageApp, REACT_MODULES, startApp } from './app.js';

const hasReact = existsSync(join(REACT_MODULES, 'react-dom'));
const DONE = ['done', null, expect.any(Array)];
const until = <T>(check: () => T) => vi.waitFor(check, { timeout: PATIENCE_MS });

/** A component that takes up its run or begins it, and stops it when it goes. React mounts it twice. */
const STRICT = `
  import { createElement, StrictMode, useEffect, useState } from 'react';
  import { createRoot } from 'react-dom/client';
  import { createGenPage } from './src/adapters/page/index.js';
  import { useRun } from './src/adapters/react/index.js';
  const gen = createGenPage({ url: '/api/gen' });
  let mounts = 0;
  function Video() {
    const [run, setRun] = useState();
    useEffect(() => {
      mounts++;
      const mine = gen.resume()[0] ?? gen.videos.create({ prompt: 'a fox' });
      setRun(mine);
      return () => mine.stop();
    }, []);
    return createElement('p', null, useRun(run)?.phase);
  }
  const root = () => createRoot(document.querySelector('main'));
  const render = (at) => at.render(createElement(StrictMode, null, createElement(Video)));
  Object.assign(window, { root, render, text: () => document.querySelector('p')?.textContent, mounts: () => mounts });
`;

/** A component that shows the run that it is given, and how many listen to each run. */
const SHOWN = `
  import { createElement } from 'react';
  import { createRoot } from 'react-dom/client';
  import { flushSync } from 'react-dom';
  import { useRun } from './src/adapters/react/index.js';
  const Video = ({ run }) => createElement('p', null, useRun(run)?.phase ?? 'none');
  const root = createRoot(document.querySelector('main'));
  const runOf = (phase) => {
    const listeners = new Set();
    let state = { phase };
    const set = (phase) => { state = { phase }; for (const listener of listeners) listener(); };
    return { listeners, set, get: () => state, subscribe: (one) => (listeners.add(one), () => listeners.delete(one)) };
  };
  Object.assign(window, { runOf, unmount: () => root.unmount(), show: (run) => {
    flushSync(() => root.render(createElement(Video, { run })));
    return text();
  } });
  const text = () => document.querySelector('p')?.textContent;
  window.changed = (run, phase) => { flushSync(() => run.set(phase)); return text(); };
`;

it.runIf(process.env.CI)('Chromium and React are there', () => {
  expect({ hasChromium, hasReact }).toEqual({ hasChromium: true, hasReact: true });
});

describe.skipIf(!hasChromium)('a page in Chromium', () => {
  let browser: Browser;
  let context: Awaited<ReturnType<Browser['newContext']>>;
  let app: PageApp;
  let tab: Page;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    // A page that is left open would ask the closed app again and again.
    await context?.close();
    await app?.close();
  });

  async function open(options: Parameters<typeof startApp>[0]): Promise<void> {
    app = await startApp(options);
    context = await browser.newContext({});
    tab = await context.newPage();
    await tab.goto(app.url);
  }

  const posts = (verb: string) => app.asked.filter((one) => one === `POST ${verb}`).length;
  const kept = (page: Page) =>
    page.evaluate<string[]>('Object.keys(JSON.parse(sessionStorage["gen-page:/api/gen"] ?? "{}"))');
  /** Resolves when something holds of a run, or it is over. */
  const reached = (run: string, holds: string) => `new Promise((resolve) => {
    const run = ${run};
    const look = () => (${holds} || /done|failed/.test(run.get().phase)) && resolve();
    run.subscribe(look);
    look();
  })`;
  /** How a run ends: its last phase, its code, and all that it has shown of a job. */
  const endOf = (run: string) => `new Promise((resolve) => {
    const run = ${run};
    const seen = [];
    const look = () => {
      const { phase, status, url, tokens, error } = run.get();
      if (status ?? url ?? tokens) seen.push(status ?? url ?? tokens);
      if (['done', 'failed'].includes(phase)) resolve([phase, error?.code ?? null, seen]);
    };
    run.subscribe(look);
    look();
  })`;

  /** A form with a PNG of 5 MB (a small picture and what readers skip), sent by a double click. */
  const DOUBLE_CLICK = `(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 300 });
    canvas.getContext('2d').fillRect(0, 0, 200, 200);
    const png = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
    const files = new DataTransfer();
    files.items.add(new File([png, new Uint8Array(5_000_000 - png.size)], 'fox.png', { type: 'image/png' }));
    const form = Object.assign(document.createElement('form'), { innerHTML: '<input type="file" name="image"><button>Make it</button>' });
    form.elements.image.files = files.files;
    const clicked = [];
    const seen = [];
    form.onsubmit = (event) => {
      event.preventDefault();
      const run = gen.videos.create({ prompt: 'a fox', first_frame_upload_id: new FormData(form).get('image') });
      if (clicked.push(run) === 1) run.subscribe(() => seen.push(run.get()));
    };
    document.body.append(form);
    for (const _ of [1, 2]) form.querySelector('button').click();
    await clicked[1].done;
    return { isOne: clicked[0] === clicked[1], seen };
  })()`;
  const PLAY = (url: string | undefined) => `new Promise((resolve, reject) => {
    const video = document.querySelector('video');
    video.onerror = () => reject(new Error('the video does not load'));
    video.onseeked = () => resolve([video.duration, video.currentTime]);
    video.onloadedmetadata = () => { video.currentTime = video.duration / 2; };
    video.src = ${JSON.stringify(url)};
  })`;

  it.each([
    ['straight to a storage that admits pages', 'other-origin', 0, []],
    ['through the proxy where the storage does not admit pages', 'other-origin', 9, ['POST bytes']],
    ['through the proxy where the storage is the service itself', 'same-origin', 0, ['POST bytes']],
  ] as const)(
    'uploads the file of a double click once, %s, and plays the video',
    async (_, storage, refused, relayed) => {
      // The bytes are sent in real time: on a clock much faster than that the request of a busy machine would be late.
      await open({ storage, jobMs: 300, speed: 10 });
      const match = { method: 'OPTIONS', path: '/storage/*' };
      if (refused > 0) app.sandbox.faults.add({ match, status: 403, times: refused });
      const urls: string[] = [];
      tab.on('request', (request) => urls.push(request.url()));
      const { isOne, seen } = await tab.evaluate<{
        isOne: boolean;
        seen: { phase: string; uploaded: number; url?: string }[];
      }>(DOUBLE_CLICK);
      expect(isOne).toBe(true);
      const last = seen.at(-1);
      expect(last).toMatchObject({ phase: 'done', uploaded: 1, url: expect.stringContaining('/api/gen/file?t=') });
      expect(seen.filter(({ phase, uploaded }) => phase === 'uploading' && uploaded > 0)).not.toEqual([]);
      expect(app.asked.filter((one) => one !== 'POST watch')).toEqual([
        'POST session',
        'POST upload',
        ...relayed,
        'POST uploaded',
        'POST videos',
      ]);
      expect(await tab.evaluate(PLAY(last?.url))).toEqual([expect.closeTo(5, 0), expect.closeTo(2.5, 0)]);
      // The page has no key, and asks nobody but its own server and the storage.
      expect(urls.filter((url) => url.includes(app.sandbox.apiKey))).toEqual([]);
      expect(app.sandbox.jobs).toHaveLength(1);
    },
  );

  it('makes one job over reloads at random moments, in real time', async () => {
    await open({ jobMs: 2_000, speed: 1 });
    const random = seeded(7);
    // From this moment on the run is kept: a reload before it sends nothing, and so loses nothing that is paid.
    await tab.evaluate(reached(`gen.videos.create({ prompt: 'a fox over reloads' })`, '!run.get().isCancelable'));
    for (let reload = 0; reload < 6; reload++) {
      await tab.evaluate(`new Promise((resolve) => setTimeout(resolve, ${Math.floor(random() * 500)}))`);
      await tab.goto(app.url);
    }
    expect(await tab.evaluate(endOf('runs[0]'))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(1);
    await tab.goto(app.url);
    expect(await tab.evaluate(endOf('runs[0]'))).toEqual(DONE);
    await tab.evaluate('runs[0].forget()');
    await tab.goto(app.url);
    expect(await tab.evaluate('runs.length')).toBe(0);
  });

  it.each([
    ['waiting', 'a fox [stall]', 'not_found'],
    ['creating', 'a fox', 'other_user'],
  ])('a run that is %s is not shown to the next user of the tab, and makes nothing', async (phase, prompt, code) => {
    await open({ jobMs: 200, speed: 10 });
    if (phase === 'creating') app.creates = new Promise(() => {});
    await tab.evaluate(
      reached(
        `gen.videos.create({ prompt: '${prompt}' })`,
        `run.get().phase === '${phase}' && !run.get().isCancelable`,
      ),
    );
    expect(await kept(tab)).toHaveLength(1);
    await until(() => expect(app.sandbox.jobs).toHaveLength(1));
    await tab.goto('about:blank');
    app.creates = Promise.resolve();
    await tab.goto(`${app.url}?as=ben`);
    expect(await tab.evaluate(endOf('runs[0]'))).toEqual(['failed', code, []]);
    expect(await kept(tab)).toEqual([]);
    // Ben's own click is his.
    expect(await tab.evaluate(endOf(`gen.videos.create({ prompt: 'a crow' })`))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it('a tab that still shows the user who has signed out in another one makes nothing, and forgets what was his', async () => {
    await open({ jobMs: 200, speed: 10 });
    await tab.evaluate(
      reached(`window.run = gen.videos.create({ prompt: 'a fox [slow:60s]' })`, `run.get().phase === 'waiting'`),
    );
    const other = await context.newPage();
    await other.goto(`${app.url}?as=ben`);
    const refused = ['failed', 'other_user', []];
    expect(await tab.evaluate(endOf('gen.videos.create({ prompt: "a click of ann" })'))).toEqual(refused);
    expect(await tab.evaluate(endOf('window.run'))).toEqual(['failed', 'not_found', expect.any(Array)]);
    expect(await kept(tab)).toEqual([]);
    expect(app.sandbox.jobs).toHaveLength(1);
    expect(await other.evaluate(endOf('gen.videos.create({ prompt: "a click of ben" })'))).toEqual(DONE);
    // His tab keeps what is his, and a reload of the first one shows nothing of it.
    await tab.goto(app.url);
    expect([await tab.evaluate('runs.length'), (await kept(other)).length]).toEqual([0, 1]);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it.each([6, 12])('with %i runs another request takes less than a second, and the page holds one', async (count) => {
    await open({ jobMs: 60_000, speed: 1 });
    const prompts = JSON.stringify(Array.from({ length: count }, (_, at) => `fox ${at}`));
    await tab.evaluate(
      `Promise.all(${prompts}.map((prompt) => { const one = gen.videos.create({ prompt }); return ${reached('one', "run.get().phase === 'waiting'")}; }))`,
    );
    await until(() => expect(app.open()).toBe(1));
    const took = await tab.evaluate<number>(
      `(async () => { const start = performance.now(); await (await fetch('/ping')).text(); return performance.now() - start; })()`,
    );
    expect(took).toBeLessThan(1_000);
    expect([app.open(), app.sandbox.jobs.length]).toEqual([1, count]);
  });

  it('stop() and the same create() in one tick, while the create is in flight, make one job', async () => {
    await open({ jobMs: 200, speed: 10 });
    let answer = () => {};
    app.creates = new Promise<void>((resolve) => (answer = resolve));
    await tab.evaluate(reached(`window.first = gen.videos.create({ prompt: 'a fox' })`, '!run.get().isCancelable'));
    await until(() => expect(app.sandbox.jobs).toHaveLength(1));
    await tab.evaluate(`first.stop(); window.second = gen.videos.create({ prompt: 'a fox' }); undefined`);
    await until(() => expect(posts('videos')).toBe(2));
    answer();
    expect(await tab.evaluate(endOf('second'))).toEqual(DONE);
    expect([app.sandbox.jobs.length, await tab.evaluate('first.id === second.id')]).toEqual([1, true]);
  });

  const lan = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  it.runIf(lan)('works over plain HTTP from an address that is not loopback', async () => {
    await open({ jobMs: 200, speed: 10 });
    await tab.goto(app.url.replace('127.0.0.1', lan ?? ''));
    expect(await tab.evaluate('isSecureContext')).toBe(false);
    expect(await tab.evaluate(endOf(`gen.videos.create({ prompt: 'a fox' })`))).toEqual(DONE);
  });

  it('a link that is opened by itself plays the video', async () => {
    await open({ jobMs: 200, speed: 10 });
    const job = await app.client.videos.createAndWait({ prompt: 'a fox' });
    await tab.goto(`${app.url}api/gen/${await app.proxy.link(job, { expiresInMs: 60_000 })}`);
    await until(async () =>
      expect(await tab.evaluate("document.querySelector('video')?.readyState ?? 0")).toBeGreaterThan(0),
    );
  });

  it('a reload with finished runs sends no create and reads nothing', async () => {
    await open({ jobMs: 100, speed: 10 });
    const ends = (runs: string) => tab.evaluate(`Promise.all(${runs}).then((ends) => ends.map(({ phase }) => phase))`);
    const three = ['done', 'done', 'done'];
    expect(await ends(`['a fox', 'a crow', 'a hare'].map((prompt) => gen.videos.create({ prompt }).done)`)).toEqual(
      three,
    );
    const before = app.sandbox.requests.length;
    await tab.goto(app.url);
    expect(await ends('runs.map(({ done }) => done)')).toEqual(three);
    expect([app.sandbox.requests.length - before, posts('videos'), posts('session')]).toEqual([0, 3, 1]);
  });

  it.skipIf(!hasReact)(
    'a component in strict mode begins one run, and leaves no request when it or its page goes',
    async () => {
      await open({ jobMs: 60_000, speed: 1, script: STRICT });
      const waits = async (mounts: number) => {
        await until(async () => expect(await tab.evaluate('text()')).toBe('waiting'));
        expect([await tab.evaluate('mounts()'), posts('videos'), app.sandbox.jobs.length]).toEqual([mounts, 1, 1]);
        await until(() => expect(app.open()).toBe(1));
      };
      await tab.evaluate('render(window.first = root())');
      await waits(2);
      await tab.evaluate('first.unmount()');
      await until(() => expect(app.open()).toBe(0));
      // Both mounts take up the run that is kept.
      await tab.evaluate('render(root())');
      await waits(4);
      await tab.goto('about:blank');
      await until(() => expect(app.open()).toBe(0));
    },
  );

  it.skipIf(!hasReact)(
    'useRun is undefined without a run, follows the one that it is given, and leaves no listener',
    async () => {
      await open({ script: SHOWN });
      const [texts, counts] = await tab.evaluate<unknown[]>(`(() => {
      const [first, second] = [runOf('uploading'), runOf('creating')];
      const texts = [show(undefined), show(null), show(first), changed(first, 'waiting'), show(second), changed(first, 'done')];
      const counts = [first.listeners.size, second.listeners.size];
      unmount();
      return [texts, [...counts, second.listeners.size]];
    })()`);
      expect(texts).toEqual(['none', 'none', 'uploading', 'waiting', 'creating', 'creating']);
      expect(counts).toEqual([0, 1, 0]);
    },
  );
});

it.skipIf(!hasReact)('useRun renders on a server', async () => {
  const program = await bundled(
    `import { createElement } from 'react';
     import { renderToString } from 'react-dom/server';
     import { useRun } from './src/adapters/react/index.js';
     const Video = ({ run }) => createElement('p', null, useRun(run)?.phase ?? 'none');
     const state = { phase: 'creating', uploaded: 1 };
     module.exports = [undefined, { get: () => state, subscribe: () => () => {} }].map((run) => renderToString(createElement(Video, { run })));`,
    'node',
  );
  const module = { exports: [] as string[] };
  new Function('module', 'require', program)(module, createRequire(import.meta.url));
  expect(module.exports).toEqual(['<p>none</p>', '<p>creating</p>']);
});
