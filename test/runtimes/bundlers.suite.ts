// Each bundler for pages and workers. The pages run in a real Chromium.
import { existsSync } from 'node:fs';
import { type Bundler, esbuild, rollup, vite, webpack, writeEntry } from './bundle.js';
import { type Context, judge, need, type Step, type Suite } from './suite.js';

const BUNDLERS: Record<string, Bundler> = { esbuild, Rollup: rollup, Vite: vite, webpack };
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
const QUIET = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate<T>(script: string): Promise<T>;
}
interface Chromium {
  launch(options: object): Promise<{ newPage(): Promise<Page>; close(): Promise<void> }>;
}

/** Bundles the scenario and runs it in a page on the service's origin. */
async function inChromium({ project, service }: Context, bundler: Bundler): Promise<void> {
  const entry = writeEntry(project, 'page.mjs', "export { runScenario } from './scenario.mjs';");
  service.publish('/scenario.js', 'text/javascript', await bundler(project, entry, 'browser'));
  service.publish('/page', 'text/html', '<!doctype html><title>scenario</title>');
  const { chromium } = (await need<{ default: { chromium: Chromium } }>('playwright-core')).default;
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: QUIET });
  try {
    const page = await browser.newPage();
    await page.goto(`${service.config.baseUrl}/page`);
    judge(
      await page.evaluate<Step[]>(
        `import('/scenario.js').then((module) => module.runScenario(${JSON.stringify(service.config)}))`,
      ),
    );
  } finally {
    await browser.close();
  }
}

/** Bundles the scenario for a worker, without warnings and Node imports. */
async function forWorker({ project }: Context, bundler: Bundler): Promise<void> {
  const entry = writeEntry(
    project,
    'bundled-worker.mjs',
    "import { runScenario } from './scenario.mjs';\nexport { createWebhookHandler } from 'gen-client/webhooks';\nexport default { fetch: runScenario };",
  );
  const code = await bundler(project, entry, 'worker');
  if (!code.includes('Idempotency-Key') && !code.includes('idempotency-key'))
    throw new Error('the client is not in the bundle');
}

export const suites: Suite[] = Object.entries(BUNDLERS).flatMap(([name, bundler]): Suite[] => [
  {
    name: `Chromium, bundled by ${name}`,
    missing: CHROMIUM === undefined ? 'no Chromium is installed' : undefined,
    run: (context) => inChromium(context, bundler),
  },
  { name: `${name} for a worker`, run: (context) => forWorker(context, bundler) },
]);
