// The React hook in Chromium and on a server, with React from test/runtimes.
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { hasChromium, type Page } from '../support/browser.js';
import { deferred } from '../support/deferred.js';
import { bundle } from './app.js';
import { hasReact, inChromium, until } from './in-chromium.js';

const IMPORTS = `
  import { createElement, StrictMode, useEffect, useMemo, useState } from 'react';
  import { createRoot, hydrateRoot } from 'react-dom/client';
  import { flushSync } from 'react-dom';
  import { createGenPage } from './src/adapters/page/index.js';
  import { useRun } from './src/adapters/react/index.js';
  const text = () => document.querySelector('p')?.textContent;
  const root = () => createRoot(document.querySelector('main'));
`;

/** A component that resumes or creates its run, and stops it on unmount. StrictMode mounts it twice. */
const STRICT_MODE = `${IMPORTS}
  const gen = createGenPage({ url: PROXY_URL });
  let mounts = 0;
  function Video() {
    const [run, setRun] = useState();
    useEffect(() => {
      mounts++;
      const current = gen.resume()[0] ?? gen.videos.create({ prompt: 'a fox' });
      setRun(current);
      return () => current.stop();
    }, []);
    return createElement('p', null, useRun(run)?.phase);
  }
  const render = (container) => container.render(createElement(StrictMode, null, createElement(Video)));
  Object.assign(window, { root, render, text, mounts: () => mounts });
`;

/** A component whose effect creates a job, and runs again when `theme` changes. */
const EFFECT_CREATE = `${IMPORTS}
  const gen = createGenPage({ url: PROXY_URL });
  function Video({ theme }) {
    const [run, setRun] = useState();
    useEffect(() => {
      const current = gen.videos.create({ prompt: 'a fox' });
      setRun(current);
      return () => current.stop();
    }, [theme]);
    return createElement('p', null, useRun(run)?.phase);
  }
  const container = root();
  const render = (theme) => container.render(createElement(StrictMode, null, createElement(Video, { theme })));
  Object.assign(window, { render, text });
`;

/** A component that follows its ticket's job. */
const WATCH = `${IMPORTS}
  export const Watched = ({ ticket }) => {
    const gen = useMemo(() => createGenPage({ url: '/api/gen' }), []);
    const { phase } = useRun(useMemo(() => gen.watch(ticket), [ticket]));
    return createElement('p', null, phase);
  };
`;
const SERVER_WATCH = `${WATCH}
  import { renderToString } from 'react-dom/server';
  export const render = (ticket) => renderToString(createElement(Watched, { ticket }));
`;
const HYDRATED_WATCH = `${WATCH}
  const main = document.querySelector('main');
  const { ticket } = document.querySelector('[data-ticket]').dataset;
  Object.assign(window, { text, first: text(), errors: [] });
  const onRecoverableError = (error) => errors.push(String(error));
  hydrateRoot(main.querySelector('div'), createElement(Watched, { ticket }), { onRecoverableError });
`;

/** A component that shows a run, and counts each run's listeners. */
const LISTENER_COUNT = `${IMPORTS}
  const Video = ({ run }) => createElement('p', null, useRun(run)?.phase ?? 'none');
  const container = root();
  const runOf = (phase) => {
    const listeners = new Set();
    let state = { phase };
    const set = (phase) => { state = { phase }; for (const listener of listeners) listener(); };
    return { listeners, set, get: () => state, subscribe: (listener) => (listeners.add(listener), () => listeners.delete(listener)) };
  };
  Object.assign(window, { runOf, unmount: () => container.unmount(), show: (run) => {
    flushSync(() => container.render(createElement(Video, { run })));
    return text();
  } });
  window.change = (run, phase) => { flushSync(() => run.set(phase)); return text(); };
`;

/** Runs a program in this process, and returns its exports. */
async function runOnServer<Exports>(code: string): Promise<Exports> {
  const program = await bundle(code, { platform: 'node' });
  const module = { exports: {} };
  new Function('module', 'exports', 'require', program)(module, module.exports, createRequire(import.meta.url));
  return module.exports as Exports;
}

interface ServerProgram {
  render(ticket: string): string;
}

describe.skipIf(!hasChromium || !hasReact)('React in Chromium', () => {
  const open = inChromium();
  const expectPhase = (tab: Page, phase: string) => until(async () => expect(await tab.evaluate('text()')).toBe(phase));

  it('creates one run in StrictMode, and leaves no request after unmount or navigation', async () => {
    const { app, tab, posts } = await open({ jobMs: 60_000, speed: 1, script: STRICT_MODE });
    const expectOneRun = async (mounts: number) => {
      await expectPhase(tab, 'waiting');
      expect([await tab.evaluate('mounts()'), posts('videos'), app.sandbox.jobs.length]).toEqual([mounts, 1, 1]);
      await until(() => expect(app.openRequests()).toBe(1));
    };
    await tab.evaluate('render(window.first = root())');
    await expectOneRun(2);
    await tab.evaluate('first.unmount()');
    await until(() => expect(app.openRequests()).toBe(0));
    // Both mounts resume the stored run.
    await tab.evaluate('render(root())');
    await expectOneRun(4);
    await tab.goto('about:blank');
    await until(() => expect(app.openRequests()).toBe(0));
  });

  it("creates one job if an effect's dependency changes while the create is in flight", async () => {
    const { app, tab, posts } = await open({ jobMs: 200, speed: 10, script: EFFECT_CREATE });
    const { promise, resolve: respond } = deferred();
    app.creates = promise;
    await tab.evaluate(`render('light')`);
    await until(() => expect(app.sandbox.jobs).toHaveLength(1));
    await tab.evaluate(`render('dark')`);
    await until(() => expect(posts('videos')).toBe(2));
    await expectPhase(tab, 'creating');
    respond();
    await expectPhase(tab, 'done');
    expect(app.sandbox.jobs).toHaveLength(1);
  });

  it('hydrates a server-rendered watch and follows its job', async () => {
    const { render } = await runOnServer<ServerProgram>(SERVER_WATCH);
    const { app, tab, posts } = await open({
      jobMs: 200,
      speed: 10,
      script: HYDRATED_WATCH,
      main: async ({ client, proxy }) => {
        const { job } = await client.videos.create({ prompt: 'a fox' });
        const ticket = await proxy.ticket(job, { id: 'ann' });
        return `<div data-ticket="${ticket}">${render(ticket)}</div>`;
      },
    });
    await expectPhase(tab, 'done');
    expect(await tab.evaluate('[first, errors]')).toEqual(['waiting', []]);
    expect([app.sandbox.jobs.length, posts('videos')]).toEqual([1, 0]);
  });

  it('returns undefined from useRun without a run, follows its run, and leaves no listener', async () => {
    const { tab } = await open({ script: LISTENER_COUNT });
    const [texts, counts] = await tab.evaluate<unknown[]>(`(() => {
      const [first, second] = [runOf('uploading'), runOf('creating')];
      const texts = [show(undefined), show(null), show(first), change(first, 'waiting'), show(second), change(first, 'done')];
      const counts = [first.listeners.size, second.listeners.size];
      unmount();
      return [texts, [...counts, second.listeners.size]];
    })()`);
    expect(texts).toEqual(['none', 'none', 'uploading', 'waiting', 'creating', 'creating']);
    expect(counts).toEqual([0, 1, 0]);
  });
});

it.skipIf(!hasReact)('a server that renders 1,000 watched tickets retains no timer and no state', async () => {
  const { render } = await runOnServer<ServerProgram>(SERVER_WATCH);
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  for (let index = 0; index < 200; index++) render(`warm-up-${index}`);
  const [timersBefore, heapBefore] = [timers(), heapBytes()];
  for (let index = 0; index < 1_000; index++) expect(render(`ticket-${index}`)).toBe('<p>waiting</p>');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(timers() - timersBefore).toBe(0);
  expect(heapBytes() - heapBefore).toBeLessThan(1_000_000);
});

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let times = 0; times < 3; times++) gc();
  return process.memoryUsage().heapUsed;
}
