// The scenario with each bundler: in Chromium, and bundled for a worker.
import assert from 'node:assert/strict';
import { hasChromium, launch } from '../support/browser.js';
import { type Bundler, esbuild, rollup, vite, webpack, writeEntry } from './bundle.js';
import { assertSteps, type Context, type Step, type Suite } from './suite.js';

const BUNDLERS: Record<string, Bundler> = { esbuild, Rollup: rollup, Vite: vite, webpack };

/** Runs the bundled scenario in a page on the service's origin. */
async function runInChromium({ project, service }: Context, bundler: Bundler): Promise<void> {
  const entry = writeEntry(project, 'page.mjs', "export { runScenario } from './scenario.mjs';");
  service.publish('/scenario.js', 'text/javascript', await bundler(project, entry, 'browser'));
  service.publish('/page', 'text/html', '<!doctype html><title>scenario</title>');
  const browser = await launch();
  try {
    const page = await (await browser.newContext({})).newPage();
    await page.goto(`${service.config.baseUrl}/page`);
    const script = `import('/scenario.js').then((module) => module.runScenario(${JSON.stringify(service.config)}))`;
    assertSteps(await page.evaluate<Step[]>(script));
  } finally {
    await browser.close();
  }
}

/** Bundles the scenario for a worker, without warnings or Node imports. */
async function bundleForWorker({ project }: Context, bundler: Bundler): Promise<void> {
  const entry = writeEntry(
    project,
    'bundled-worker.mjs',
    "import { runScenario } from './scenario.mjs';\nexport { createWebhookHandler } from 'gen-client/webhooks';\nexport default { fetch: runScenario };",
  );
  assert.match(await bundler(project, entry, 'worker'), /idempotency-key/i, 'the bundle contains the client');
}

export const suites: Suite[] = Object.entries(BUNDLERS).flatMap(([name, bundler]): Suite[] => [
  {
    name: `Chromium, bundled by ${name}`,
    skip: hasChromium ? undefined : 'Chromium is not installed',
    run: (context) => runInChromium(context, bundler),
  },
  { name: `${name} for a worker`, run: (context) => bundleForWorker(context, bundler) },
]);
