// Builds the Next.js examples offline, and uses them as a browser does.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Sandbox } from 'gen-client/sandbox';
import { type Browser, launch } from '../support/browser.js';
import { freePort } from '../support/free-port.js';
import { NODE } from './nodes.js';
import { assertSteps, type Context, execute, importSandbox, type Step, type Suite } from './suite.js';

const MODULES = fileURLToPath(new URL('./node_modules/', import.meta.url));
const ROOT_MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../examples/nextjs/', import.meta.url));
const GALLERY = fileURLToPath(new URL('../../examples/gallery/', import.meta.url));

/** Copies packages, because the bundler doesn't follow links out of the app. */
function copyPackages(project: string, app: string): void {
  const packages = {
    [join(project, 'node_modules')]: ['gen-client', 'ky', 'p-retry', 'is-network-error', 'zod'],
    [ROOT_MODULES]: ['typescript', '@types/node', 'undici-types'],
    [MODULES]: [
      ...['next', 'react', 'react-dom', '@next', '@swc', 'styled-jsx', 'scheduler', 'client-only', 'postcss', 'nanoid'],
      ...['picocolors', 'source-map-js', 'caniuse-lite', 'baseline-browser-mapping', '@types/react', 'csstype'],
    ],
  };
  for (const [from, names] of Object.entries(packages)) {
    for (const name of names) cpSync(join(from, name), join(app, 'node_modules', name), { recursive: true });
  }
}

/** Copies an example with additional files, builds it, and returns its folder and the build's output. */
async function buildApp(project: string, example: string, files: Readonly<Record<string, string>>) {
  const app = join(project, basename(example));
  cpSync(example, app, { recursive: true });
  copyPackages(project, app);
  cpSync(join(project, 'scenario.mjs'), join(app, 'scenario.mjs'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(app, 'app', name)), { recursive: true });
    writeFileSync(join(app, 'app', name), text);
  }
  const output = await execute(NODE, [join(app, 'node_modules/next/dist/bin/next'), 'build'], app);
  return { app, output };
}

/**
 * Builds the example without environment variables, and creates a video from its form. Runs the scenario in a Node route, an
 * edge route, and a Server Component.
 */
async function useExample({ project, service }: Context): Promise<void> {
  const config = JSON.stringify(service.config);
  const run = `(await import('../../../scenario.mjs')).runScenario(${config})`;
  const routes = {
    'api/node/route.js': `export const POST = async () => Response.json(await ${run});`,
    'api/edge/route.js': `export const POST = async () => Response.json(await ${run}); export const runtime = 'edge';`,
    'component/page.js': `export const dynamic = 'force-dynamic'; export default async function Page() { return <p data-steps={JSON.stringify(await ${run})} />; }`,
  };
  const { app, output } = await buildApp(project, EXAMPLE, routes);
  const warnings = output
    .split('\n')
    .filter((line) => /gen-client|Critical dependency|Module not found/i.test(line) && !line.includes('/api/'));
  assert.deepEqual(warnings, []);
  const { createSandbox } = await importSandbox(project);
  const sandbox = createSandbox({ jobDurationMs: 300 });
  const api = await sandbox.listen({ port: 0 });
  const port = await freePort();
  const env = {
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: api.url,
    GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
    APP_URL: `http://127.0.0.1:${port}`,
  };
  try {
    await whileServed({ app, port, env }, async (url) => {
      await createVideo(url);
      await sandbox.settled();
      assert.deepEqual(
        sandbox.deliveries.map(({ ok }) => ok),
        [true],
        'the webhook is acknowledged',
      );
      const page = await (await fetch(`${url}/component`)).text();
      const [, steps = '[]'] = /data-steps="([^"]+)"/.exec(page) ?? [];
      assertSteps(
        JSON.parse(steps.replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&amp;', '&')) as Step[],
      );
      service.reset();
      for (const runtime of ['node', 'edge']) {
        assertSteps((await (await fetch(`${url}/api/${runtime}`, { method: 'POST' })).json()) as Step[]);
        service.reset();
      }
    });
  } finally {
    await api.close();
  }
}

/** Creates a video and downloads a part of it, as the example's page does. Also sends invalid requests. */
async function createVideo(url: string): Promise<void> {
  assert.match(await (await fetch(url)).text(), /Create a video/);
  const created = await fetch(`${url}/api/videos`, { method: 'POST', body: JSON.stringify({ prompt: 'a fox' }) });
  assert.equal(created.status, 202);
  const { id } = (await created.json()) as { id: string };
  const empty = await fetch(`${url}/api/videos`, { method: 'POST', body: JSON.stringify({ prompt: '' }) });
  assert.equal(empty.status, 400, 'a create without a prompt');
  const headers = { cookie: created.headers.getSetCookie()[0]?.split(';')[0] ?? '' };
  for (let status = ''; status !== 'completed'; await new Promise((done) => setTimeout(done, 50))) {
    const response = await fetch(`${url}/api/videos/${id}`, { headers });
    assert.equal(response.status, 200);
    status = ((await response.json()) as { status: string }).status;
    assert.match(status, /processing|completed/);
  }
  const part = await fetch(`${url}/api/files/${id}`, { headers: { ...headers, range: 'bytes=4-7' } });
  assert.deepEqual([part.status, await part.text()], [206, 'ftyp']);
  assert.equal((await fetch(`${url}/api/files/${id}`)).status, 404, "another user's file");
  const forged = await fetch(`${url}/api/webhooks`, { method: 'POST', body: '{}' });
  assert.equal(forged.status, 400, 'a forged webhook');
}

interface BuiltApp {
  readonly app: string;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Serves the app during `use`. */
async function whileServed({ app, port, env }: BuiltApp, use: (url: string) => Promise<void>): Promise<void> {
  const server = spawn(
    NODE,
    [join(app, 'node_modules/next/dist/bin/next'), 'start', '--port', String(port), '--hostname', '127.0.0.1'],
    {
      cwd: app,
      env: { ...process.env, ...env, NEXT_TELEMETRY_DISABLED: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    await new Promise<void>((ready, failed) => {
      server.stdout.on('data', (text) => String(text).includes('Ready') && ready());
      server.on('exit', (code) => failed(new Error(`next start exited with ${code}`)));
    });
    await use(`http://127.0.0.1:${port}`);
  } finally {
    server.kill();
  }
}

/** A page that renders `gen.watch(ticket)` on the server, and a route that returns the server's timers and memory. */
const RENDERED_WATCH = {
  'watched/page.tsx': `'use client';
    import { createGenPage } from 'gen-client/page';
    import { useRun } from 'gen-client/react';
    import { useMemo } from 'react';
    import type { proxy } from '../../lib/gen';
    const gen = createGenPage<typeof proxy>({ url: '/api/gen' });
    export default function Watched() {
      return <p>{useRun(useMemo(() => gen.watch(String(Math.random())), [])).phase}</p>;
    }`,
  'watched/layout.tsx': `export const dynamic = 'force-dynamic';
    export default ({ children }: { children: React.ReactNode }) => children;`,
  'api/server/route.ts': `import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm';
    export const dynamic = 'force-dynamic';
    export function GET() {
      setFlagsFromString('--expose-gc');
      for (let times = 0; times < 3; times++) runInNewContext('gc')();
      const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
      return Response.json({ timers, heapBytes: process.memoryUsage().heapUsed });
    }`,
};

/** Uses the gallery in Chromium over HTTP/1.1, and checks that its server leaks nothing. */
async function useGallery({ project }: Context): Promise<void> {
  const { app } = await buildApp(project, GALLERY, RENDERED_WATCH);
  const { createSandbox } = await importSandbox(project);
  const sandbox = createSandbox({ jobDurationMs: 4_000, storage: 'other-origin' });
  const api = await sandbox.listen({ port: 0 });
  const browser = await launch();
  try {
    const env = { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: api.url };
    await whileServed({ app, port: await freePort(), env }, async (url) => {
      await uploadAndReload(browser, url, sandbox);
      await createInTwoTabs(browser, url, sandbox);
      await renderOnServer(url);
      if (process.env.PICTURES) await takePictures(browser, url, { sandbox, folder: process.env.PICTURES });
    });
  } finally {
    await browser.close();
    await api.close();
  }
}

/** Uploads 20 MB, creates a video, reloads, and plays it. Only one job is created. */
async function uploadAndReload(browser: Browser, url: string, sandbox: Sandbox): Promise<void> {
  const context = await browser.newContext({});
  const page = await context.newPage();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  // The first visit sets the session cookie.
  await page.goto(url);
  await page.goto(url);
  await page.evaluate(FILL_FORM);
  await page.click('button');
  await page.evaluate(UNTIL_STORED);
  for (let reload = 0; reload < 12; reload++) await page.goto(url);
  await page.evaluate(UNTIL_PLAYABLE);
  assert.equal(sandbox.jobs.length, 1);
  assert.ok(!requests.join().includes(sandbox.apiKey), 'no request contains the API key');
  await context.clearCookies();
  await page.fill('[name=prompt]', 'signed out');
  await page.click('button');
  await page.evaluate(untilText('Sign in first.'));
  assert.equal(sandbox.jobs.length, 1, 'a signed-out user creates no job');
  await context.close();
}

/** Starts six runs in two tabs. Another request must take less than a second. */
async function createInTwoTabs(browser: Browser, url: string, sandbox: Sandbox): Promise<void> {
  const jobsBefore = sandbox.jobs.length;
  const context = await browser.newContext({});
  const tabs = [await context.newPage(), await context.newPage()];
  await tabs[0]?.goto(url);
  for (const tab of tabs) {
    await tab.goto(url);
    for (let at = 1; at <= 3; at++) {
      await tab.fill('[name=prompt]', `a fox [stall] ${at}`);
      await tab.click('button');
      await tab.evaluate(untilTrue(`document.querySelectorAll('li.waiting').length === ${at}`));
    }
  }
  for (const tab of tabs) {
    const ms = await tab.evaluate<number>(
      `(async () => { const start = performance.now(); await (await fetch('/watched')).text(); return performance.now() - start; })()`,
    );
    assert.ok(ms < 1_000, `another request took ${ms} ms while six runs waited`);
  }
  assert.equal(sandbox.jobs.length - jobsBefore, 6);
  await context.close();
}

/** Checks that 1,000 renders of `gen.watch(ticket)` leak no timers and no memory. */
async function renderOnServer(url: string): Promise<void> {
  const resources = async () =>
    (await (await fetch(`${url}/api/server`)).json()) as { timers: number; heapBytes: number };
  const render = async (times: number) => {
    for (let at = 0; at < times; at++) {
      assert.match(await (await fetch(`${url}/watched`)).text(), /<p>waiting<\/p>/);
    }
  };
  await render(200);
  const resourcesBefore = await resources();
  await render(1_000);
  const resourcesAfter = await resources();
  const grownMB = (resourcesAfter.heapBytes - resourcesBefore.heapBytes) / 1e6;
  const newTimers = resourcesAfter.timers - resourcesBefore.timers;
  console.log(`  1,000 renders: ${newTimers} more timers, ${grownMB.toFixed(1)} MB more heap`);
  assert.ok(newTimers <= 5 && grownMB <= 20);
}

/**
 * Captures the guide's picture with `PICTURES=docs npm run test:runtimes gallery`. With another folder, captures the gallery
 * at two widths and in two color schemes.
 */
async function takePictures(
  browser: Browser,
  url: string,
  { sandbox, folder }: { readonly sandbox: Sandbox; readonly folder: string },
): Promise<void> {
  const views = [1280, 390].flatMap((width) =>
    ['light', 'dark'].map((colorScheme) => ({ name: `gallery-${width}-${colorScheme}`, width, colorScheme })),
  );
  const guide = [{ name: 'gallery', width: 960, colorScheme: 'light' }];
  for (const { name, width, colorScheme } of folder === 'docs' ? guide : views) {
    const context = await browser.newContext({ viewport: { width, height: 640 }, colorScheme });
    const page = await context.newPage();
    await page.goto(url);
    await page.goto(url);
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    for (const [prompt, text] of [
      ['A crow that steals the crown', 'Change the prompt'],
      ['A fox at dawn', 'Ready'],
      ['A lighthouse in a storm [slow:60s]', 'Generating…'],
    ] as const) {
      await page.fill('[name=prompt]', prompt);
      await page.click('button');
      await page.evaluate(untilText(text));
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await page.screenshot?.({ path: join(folder, `${name}.png`) });
    await context.close();
  }
}

/** Script that resolves when an expression is true in the page. */
const untilTrue = (expression: string) => `(async () => {
  while (!(${expression})) await new Promise((resolve) => setTimeout(resolve, 20));
})()`;
const untilText = (text: string) => untilTrue(`document.body.innerText.includes(${JSON.stringify(text)})`);

/** Fills in a prompt and chooses a 20 MB image. */
const FILL_FORM = `(async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 300 });
  const png = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  const files = new DataTransfer();
  files.items.add(new File([png, new Uint8Array(20_000_000 - png.size)], 'fox.png', { type: 'image/png' }));
  document.querySelector('[name=image]').files = files.files;
  document.querySelector('[name=prompt]').value = 'a fox at dawn';
})()`;
/** The page stores its run before it sends the create. */
const UNTIL_STORED = untilTrue('sessionStorage.length > 0');
/** Resolves when the video is loaded and seekable. */
const UNTIL_PLAYABLE = `new Promise((resolve, reject) => {
  const check = () => {
    const video = document.querySelector('video');
    if (!video) return setTimeout(check, 100);
    video.onerror = () => reject(new Error('the video failed to load'));
    video.onseeked = () => resolve(video.currentTime);
    if (video.readyState > 0) video.currentTime = 2;
    else video.onloadedmetadata = () => { video.currentTime = 2; };
  };
  check();
})`;

export const suites: Suite[] = [
  { name: 'Next.js, the example, with Node and edge routes', run: useExample },
  { name: 'Next.js, the gallery, in Chromium', run: useGallery },
];
