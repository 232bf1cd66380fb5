// The hook in a real React, in Chromium and on a server. React is installed for test/runtimes.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Browser, hasChromium, launch, type Page } from '../sandbox-doors/browser.js';
import { ROOT } from '../support/build.js';

const MODULES = join(ROOT, 'test/runtimes/node_modules');
const hasReact = existsSync(join(MODULES, 'react-dom'));

/** A component that shows a run, and what it was rendered with. */
const SCRIPT = `
  import { createElement, StrictMode } from 'react';
  import { createRoot } from 'react-dom/client';
  import { flushSync } from 'react-dom';
  import { useRun } from './src/adapters/react/index.js';
  import { openRuns } from './src/adapters/page/run.js';

  const runs = openRuns('test');
  const rendered = [];
  function Video({ run }) {
    const state = useRun(run);
    rendered.push(state);
    return createElement('p', null, state === undefined ? 'none' : state.phase);
  }
  const root = createRoot(document.querySelector('main'));
  const render = (run, parent = 'div') => flushSync(() => root.render(createElement(parent === 'strict' ? StrictMode : parent, null, createElement(Video, { run }))));
  const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
  const runOf = (id) => {
    const listeners = new Set();
    const run = runs.begin(id, 'uploading', () => new Promise(() => {}));
    return { ...run, listeners, subscribe: (listener) => { listeners.add(listener); const end = run.subscribe(listener); return () => { listeners.delete(listener); end(); }; } };
  };
  const text = () => document.querySelector('p')?.textContent;
  Object.assign(window, { rendered, root, render, settled, runOf, text });
`;

const bundled = async (contents: string, platform: 'browser' | 'node') => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    write: false,
    format: platform === 'node' ? 'cjs' : 'iife',
    platform,
    // One React for the hook and for the program.
    alias: { react: join(MODULES, 'react'), 'react-dom': join(MODULES, 'react-dom') },
    define: { 'process.env.NODE_ENV': '"development"' },
  });
  return outputFiles[0]?.text ?? '';
};

it.runIf(process.env.CI)('React and Chromium are there', () => {
  expect({ hasReact, hasChromium }).toEqual({ hasReact: true, hasChromium: true });
});

describe.skipIf(!hasReact || !hasChromium)('useRun', () => {
  let browser: Browser;
  let page: Page;
  let script = '';

  beforeAll(async () => {
    browser = await launch();
    script = await bundled(SCRIPT, 'browser');
    page = await (await browser.newContext({})).newPage();
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    await page.goto('data:text/html,<main></main>');
    await page.evaluate(script);
  });

  const inPage = <T>(program: string) => page.evaluate<T>(`(async () => { ${program} })()`);

  it('renders again with each change of the run, and with nothing else', async () => {
    const seen = await inPage(`
      const run = runOf('a');
      render(run);
      const texts = [text()];
      run.set({ phase: 'creating' });
      await settled();
      texts.push(text());
      await settled();
      run.set({ phase: 'waiting', share: 0.5 });
      await settled();
      texts.push(text());
      return [texts, rendered.map(({ share }) => share ?? null)];`);
    expect(seen).toEqual([
      ['uploading', 'creating', 'waiting'],
      [null, null, 0.5],
    ]);
  });

  it('is undefined without a run, and follows the run that it is given later', async () => {
    const seen = await inPage(`
      render(undefined);
      const texts = [text()];
      render(null);
      texts.push(text());
      const [first, second] = [runOf('a'), runOf('b')];
      render(first);
      texts.push(text());
      second.set({ phase: 'waiting' });
      render(second);
      texts.push(text());
      first.set({ phase: 'done' });
      await settled();
      texts.push(text());
      return [texts, first.listeners.size, second.listeners.size];`);
    expect(seen).toEqual([['none', 'none', 'uploading', 'waiting', 'waiting'], 0, 1]);
  });

  it('leaves no listener when its component goes, also in strict mode', async () => {
    const seen = await inPage(`
      const run = runOf('a');
      render(run, 'strict');
      const listening = run.listeners.size;
      root.unmount();
      await settled();
      return [listening, run.listeners.size];`);
    expect(seen).toEqual([1, 0]);
  });

  it('renders on a server', async () => {
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
    const { createRequire } = await import('node:module');
    new Function('module', 'require', program)(module, createRequire(import.meta.url));
    expect(module.exports).toEqual(['<p>none</p>', '<p>creating</p>']);
  });
});
