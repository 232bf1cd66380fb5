import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest';
import { type Browser, type Context, launch, type Page } from '../support/browser.js';
import { PATIENCE_MS } from '../support/patience.js';
import { type PageApp, type PageAppOptions, REACT_MODULES, startApp } from './app.js';

/** True if test/runtimes has installed React. */
export const hasReact = existsSync(join(REACT_MODULES, 'react-dom'));
/** The result of `outcomeOf` for a completed run. */
export const DONE = ['done', null, expect.any(Array)];
export const until = <T>(check: () => T) => vi.waitFor(check, { timeout: PATIENCE_MS });

/** Script that resolves when a run meets a condition or ends. */
export const untilTrue = (run: string, condition: string) => `new Promise((resolve) => {
  const run = ${run};
  const check = () => (${condition} || /done|failed/.test(run.get().phase)) && resolve();
  run.subscribe(check);
  check();
})`;

/** Script that resolves with a run's last phase, its error code, and each status, URL, or price that it reported. */
export const outcomeOf = (run: string) => `new Promise((resolve) => {
  const run = ${run};
  const reported = [];
  const check = () => {
    const { phase, status, url, tokens, error } = run.get();
    if (status ?? url ?? tokens) reported.push(status ?? url ?? tokens);
    if (['done', 'failed'].includes(phase)) resolve([phase, error?.code ?? null, reported]);
  };
  run.subscribe(check);
  check();
})`;

/** Script that resolves when a run waits for its job. */
export const untilWaiting = (run: string) => untilTrue(run, `run.get().phase === 'waiting'`);

/** Script that resolves with the duration of another request to the app, in milliseconds. */
export const PING = `(async () => { const start = performance.now(); await (await fetch('/plain')).text(); return performance.now() - start; })()`;

/** Shares one browser among a file's tests. Each test starts an app. */
export function inChromium() {
  let browser: Browser;
  let context: Context | undefined;
  let app: PageApp | undefined;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    // An open page would send requests to the closed app.
    await context?.close();
    await app?.close();
  });
  return async (options: PageAppOptions) => {
    const startedApp = await startApp(options);
    app = startedApp;
    context = await browser.newContext({});
    const tab = await context.newPage();
    await tab.goto(startedApp.url);
    return {
      app: startedApp,
      context,
      tab,
      /** Returns the number of requests for a verb. */
      posts: (verb: string) => startedApp.requests.filter((request) => request === `POST ${verb}`).length,
    };
  };
}

/** Returns the keys of the runs that a tab stores. */
export const storedKeys = (tab: Page) =>
  tab.evaluate<string[]>('Object.keys(JSON.parse(sessionStorage["gen-page:/api/gen"] ?? "{}"))');
