// Two users of one browser, and pages that are left, in Chromium.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Browser, hasChromium, launch, type Page } from '../sandbox-doors/browser.js';
import { type PageApp, REACT_MODULES, startApp } from './app.js';

const hasReact = existsSync(join(REACT_MODULES, 'react-dom'));

const DONE = ['done', null, expect.any(Array)];
const until = <T>(check: () => T) => vi.waitFor(check, { timeout: 10_000 });

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

it.runIf(process.env.CI)('Chromium and React are there', () => {
  expect({ hasChromium, hasReact }).toEqual({ hasChromium: true, hasReact: true });
});

describe.skipIf(!hasChromium)('in Chromium', () => {
  let browser: Browser;
  let app: PageApp;
  let tab: Page;
  let newTab: () => Promise<Page>;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(() => app?.close());

  async function open(options: Parameters<typeof startApp>[0]): Promise<void> {
    app = await startApp(options);
    const context = await browser.newContext({});
    newTab = () => context.newPage();
    tab = await newTab();
    await tab.goto(app.url);
  }

  const posts = (verb: string) => app.asked.filter((one) => one === `POST ${verb}`).length;
  const kept = (page: Page) =>
    page.evaluate<string[]>('Object.keys(JSON.parse(sessionStorage["gen-page:/api/gen"] ?? "{}"))');
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

  const runs = [
    ['waiting', 'a fox [stall]', `run.get().phase === 'waiting'`, 'not_found'],
    ['done', 'a fox', `run.get().phase === 'done'`, 'not_found'],
    ['failed', 'a fox [fail:generation_rejected]', `run.get().phase === 'failed'`, 'not_found'],
    ['not answered yet', 'a fox', `run.get().phase === 'creating'`, 'other_user'],
  ] as const;

  /** Ann's run, which has come so far. */
  async function annsRun(prompt: string, reached: string): Promise<void> {
    await open({ jobMs: 200, speed: 10 });
    if (reached.includes('creating')) app.sandbox.faults.add({ match: { path: '/v1/videos' }, latencyMs: 20_000 });
    await tab.evaluate(`new Promise((resolve) => {
      const run = window.run = gen.videos.create({ prompt: ${JSON.stringify(prompt)} });
      const look = () => (${reached}) && resolve();
      run.subscribe(look);
      look();
    })`);
    expect(await kept(tab)).toHaveLength(1);
  }

  it.each(runs)(
    'a run that is %s is not shown to the next user of the tab, and makes nothing',
    async (_, prompt, reached, code) => {
      await annsRun(prompt, reached);
      await until(() => expect(posts('videos')).toBe(1));
      await tab.goto(`${app.url}?as=ben`);
      expect(await tab.evaluate(endOf('runs[0]'))).toEqual(['failed', code, []]);
      expect(await kept(tab)).toEqual([]);
      await tab.goto(app.url);
      expect(await tab.evaluate('runs.length')).toBe(0);
      await until(() => expect(app.sandbox.jobs).toHaveLength(1));
      // Ben's own click is his.
      expect(await tab.evaluate(endOf(`gen.videos.create({ prompt: 'a crow' })`))).toEqual(DONE);
      expect(app.sandbox.jobs).toHaveLength(2);
    },
  );

  it('a tab that still shows the user who has signed out in another one makes nothing, and forgets what was his', async () => {
    await annsRun('a fox [slow:60s]', `run.get().phase === 'waiting'`);
    const other = await newTab();
    await other.goto(`${app.url}?as=ben`);
    expect(await tab.evaluate(endOf('gen.videos.create({ prompt: "a click of ann" })'))).toEqual([
      'failed',
      'other_user',
      [],
    ]);
    expect(await tab.evaluate(endOf('window.run'))).toEqual(['failed', 'not_found', expect.any(Array)]);
    expect(await kept(tab)).toEqual([]);
    expect(app.sandbox.jobs).toHaveLength(1);
    expect(await other.evaluate(endOf('gen.videos.create({ prompt: "a click of ben" })'))).toEqual(DONE);
    // His tab keeps what is his, and a reload of the first one shows nothing of it.
    await tab.goto(app.url);
    expect([await tab.evaluate('runs.length'), (await kept(other)).length]).toEqual([0, 1]);
    await other.goto(app.url);
    expect(await other.evaluate(endOf('runs[0]'))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it('a reload with finished runs sends no create and reads nothing', async () => {
    await open({ jobMs: 100, speed: 10 });
    await tab.evaluate(
      `Promise.all(['a fox', 'a crow', 'a hare'].map((prompt) => gen.videos.create({ prompt }).done)).then(() => {})`,
    );
    const before = app.sandbox.requests.length;
    await tab.goto(app.url);
    expect(
      await tab.evaluate('Promise.all(runs.map(({ done }) => done)).then((ends) => ends.map(({ phase }) => phase))'),
    ).toEqual(['done', 'done', 'done']);
    expect([app.sandbox.requests.length - before, posts('videos'), posts('session')]).toEqual([0, 3, 1]);
  });

  it('a page that is left keeps no request open', async () => {
    await open({ jobMs: 60_000, speed: 1 });
    await tab.evaluate(`Promise.all(['a fox', 'a crow'].map((prompt) => new Promise((resolve) => {
      const run = gen.videos.create({ prompt });
      run.subscribe(() => run.get().status === 'processing' && resolve());
    })))`);
    await until(() => expect(app.open()).toBe(2));
    await tab.goto('about:blank');
    await until(() => expect(app.open()).toBe(0));
  });

  it.skipIf(!hasReact)('a component in strict mode begins one run, and leaves no request when it goes', async () => {
    await open({ jobMs: 60_000, speed: 1, script: STRICT });
    await tab.evaluate('render(window.first = root())');
    await until(async () => expect(await tab.evaluate('text()')).toBe('waiting'));
    expect([await tab.evaluate('mounts()'), posts('videos'), app.sandbox.jobs.length]).toEqual([2, 1, 1]);
    await until(() => expect(app.open()).toBe(1));
    await tab.evaluate('first.unmount()');
    await until(() => expect(app.open()).toBe(0));
    // Both mounts take up the run that is kept.
    await tab.evaluate('render(root())');
    await until(async () => expect(await tab.evaluate('text()')).toBe('waiting'));
    expect([await tab.evaluate('mounts()'), posts('videos'), app.sandbox.jobs.length]).toEqual([4, 1, 1]);
    await until(() => expect(app.open()).toBe(1));
  });
});
