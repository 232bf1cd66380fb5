// Builds Next.js apps offline and calls them: the examples, with the scenario in a Node route and in an edge route.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Sandbox, SandboxOptions } from 'gen-client/sandbox';
import { type Browser, launch } from '../support/browser.js';
import { freePort } from '../support/free-port.js';
import { type Context, execute, judge, type Step, type Suite } from './suite.js';

const MODULES = fileURLToPath(new URL('./node_modules/', import.meta.url));
const ROOT_MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../examples/nextjs/', import.meta.url));
const GALLERY = fileURLToPath(new URL('../../examples/gallery/', import.meta.url));
const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));

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

/**
 * Builds the example without environment variables, with the scenario in a Node route and in an edge route, and creates a
 * video from the form to the player like a browser.
 */
async function theExample({ project, service }: Context): Promise<void> {
  const app = join(project, 'next-example');
  cpSync(EXAMPLE, app, { recursive: true });
  copyPackages(project, app);
  cpSync(join(project, 'scenario.mjs'), join(app, 'scenario.mjs'));
  const config = JSON.stringify(service.config);
  const run = `(await import('../../../scenario.mjs')).runScenario(${config})`;
  const routes = {
    'api/node/route.js': `export const POST = async () => Response.json(await ${run});`,
    'api/edge/route.js': `export const POST = async () => Response.json(await ${run}); export const runtime = 'edge';`,
    // A Server Component.
    'in/component/page.js': `export const dynamic = 'force-dynamic'; export default async function Page() { return <p data-steps={JSON.stringify(await ${run})} />; }`,
  };
  for (const [name, text] of Object.entries(routes)) {
    mkdirSync(dirname(join(app, 'app', name)), { recursive: true });
    writeFileSync(join(app, 'app', name), text);
  }
  const reported = await execute(NODE, [join(app, 'node_modules/next/dist/bin/next'), 'build'], app);
  const warnings = reported
    .split('\n')
    .filter((line) => /gen-client|Critical dependency|Module not found/i.test(line) && !line.includes('/api/'));
  if (warnings.length > 0) throw new Error(warnings.join('\n'));
  const sandbox = await sandboxOf(project, { jobDurationMs: 300 });
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
      await watchVideo(url);
      await sandbox.settled();
      equal('the webhook', sandbox.deliveries.map(({ ok }) => ok).join(), 'true');
      const page = await (await fetch(`${url}/in/component`)).text();
      const [, steps = '[]'] = /data-steps="([^"]+)"/.exec(page) ?? [];
      judge(JSON.parse(steps.replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&amp;', '&')) as Step[]);
      service.settle();
      for (const runtime of ['node', 'edge']) {
        judge((await (await fetch(`${url}/api/${runtime}`, { method: 'POST' })).json()) as Step[]);
        service.settle();
      }
    });
  } finally {
    await api.close();
  }
}

/** Creates a sandbox from the installed package. */
async function sandboxOf(project: string, options: SandboxOptions): Promise<Sandbox> {
  const entry = pathToFileURL(join(project, 'node_modules/gen-client/dist/sandbox.js')).href;
  return ((await import(entry)) as typeof import('gen-client/sandbox')).createSandbox(options);
}

async function watchVideo(url: string): Promise<void> {
  const page = await (await fetch(url)).text();
  if (!page.includes('Make a video')) throw new Error('the page has no form');
  const created = await fetch(`${url}/api/videos`, { method: 'POST', body: JSON.stringify({ prompt: 'a fox' }) });
  equal('the create', created.status, 202);
  const { id } = (await created.json()) as { id: string };
  const empty = await fetch(`${url}/api/videos`, { method: 'POST', body: JSON.stringify({ prompt: '' }) });
  equal('a create without a prompt', empty.status, 400);
  const headers = { cookie: created.headers.getSetCookie()[0]?.split(';')[0] ?? '' };
  for (let status = ''; status !== 'completed'; await new Promise((done) => setTimeout(done, 50))) {
    const response = await fetch(`${url}/api/videos/${id}`, { headers });
    equal('the status', response.status, 200);
    status = ((await response.json()) as { status: string }).status;
    if (!['processing', 'completed'].includes(status)) throw new Error(`the video is ${status}`);
  }
  const part = await fetch(`${url}/api/files/${id}`, { headers: { ...headers, range: 'bytes=4-7' } });
  equal('a range of the file', part.status, 206);
  equal('its bytes', await part.text(), 'ftyp');
  equal("another user's file", (await fetch(`${url}/api/files/${id}`)).status, 404);
  const forged = await fetch(`${url}/api/webhooks`, { method: 'POST', body: '{}' });
  equal('a forged webhook', forged.status, 400);
}

function equal(what: string, seen: unknown, wanted: unknown): void {
  if (seen !== wanted) throw new Error(`${what}: ${String(seen)} instead of ${String(wanted)}`);
}

interface Served {
  readonly app: string;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Serves the built app during `use`. */
async function whileServed({ app, port, env }: Served, use: (url: string) => Promise<void>): Promise<void> {
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
      server.on('exit', (code) => failed(new Error(`next start ended with ${code}`)));
    });
    await use(`http://127.0.0.1:${port}`);
  } finally {
    server.kill();
  }
}

/** A page that renders `gen.watch(ticket)` on the server, and a route that returns the server's resources. */
const WATCHED = {
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

/** Uses the gallery in Chromium over HTTP/1.1, and checks what its server retains. */
async function theGallery({ project }: Context): Promise<void> {
  const app = join(project, 'next-gallery');
  cpSync(GALLERY, app, { recursive: true });
  copyPackages(project, app);
  for (const [name, text] of Object.entries(WATCHED)) {
    mkdirSync(dirname(join(app, 'app', name)), { recursive: true });
    writeFileSync(join(app, 'app', name), text);
  }
  await execute(NODE, [join(app, 'node_modules/next/dist/bin/next'), 'build'], app);
  const sandbox = await sandboxOf(project, { jobDurationMs: 4_000, storage: 'other-origin' });
  const api = await sandbox.listen({ port: 0 });
  const browser = await launch();
  try {
    const env = { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: api.url };
    await whileServed({ app, port: await freePort(), env }, async (url) => {
      await uploadOverReloads(browser, url, sandbox);
      await sixRuns(browser, url, sandbox);
      await serverAfterRenders(url);
      if (process.env.PICTURES) await takePictures(browser, url, { sandbox, folder: process.env.PICTURES });
    });
  } finally {
    await browser.close();
    await api.close();
  }
}

/** Uploads 20 MB, creates a video, reloads, and plays it. Only one job may exist. */
async function uploadOverReloads(browser: Browser, url: string, sandbox: Sandbox): Promise<void> {
  const context = await browser.newContext({});
  const page = await context.newPage();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  await page.goto(url);
  await page.evaluate(FILL_FORM);
  await page.click('button');
  await page.evaluate(UNTIL_KEPT);
  for (let reload = 0; reload < 12; reload++) await page.goto(url);
  await page.evaluate(UNTIL_SOUGHT);
  equal('the jobs', sandbox.jobs.length, 1);
  equal('the requests with the key', requests.filter((one) => one.includes(sandbox.apiKey)).length, 0);
  await context.clearCookies();
  await page.fill('[name=prompt]', 'signed out');
  await page.click('button');
  await page.evaluate(untilText('Sign in first.'));
  equal('the jobs after a click without the session', sandbox.jobs.length, 1);
  await context.close();
}

/** Starts six runs of another visitor in two tabs. Another request must take less than a second. */
async function sixRuns(browser: Browser, url: string, sandbox: Sandbox): Promise<void> {
  const before = sandbox.jobs.length;
  const context = await browser.newContext({});
  const tabs = [await context.newPage(), await context.newPage()];
  await tabs[0]?.goto(url);
  for (const tab of tabs) {
    await tab.goto(url);
    for (let at = 1; at <= 3; at++) {
      await tab.fill('[name=prompt]', `a fox [stall] ${at}`);
      await tab.click('button');
      await tab.evaluate(
        `new Promise((resolve) => { const look = () => document.querySelectorAll('li.waiting').length === ${at} ? resolve() : setTimeout(look, 20); look(); })`,
      );
    }
  }
  for (const tab of tabs) {
    const ms = await tab.evaluate<number>(
      `(async () => { const start = performance.now(); await (await fetch('/watched')).text(); return performance.now() - start; })()`,
    );
    if (ms >= 1_000) throw new Error(`another request took ${ms} ms while six runs wait`);
  }
  equal('the jobs of six clicks', sandbox.jobs.length - before, 6);
  await context.close();
}

/** Checks that 1,000 renders of a watched ticket leave no timer and little memory. */
async function serverAfterRenders(url: string): Promise<void> {
  const server = async () => (await (await fetch(`${url}/api/server`)).json()) as { timers: number; heapBytes: number };
  const render = async (times: number) => {
    for (let at = 0; at < times; at++) {
      const page = await (await fetch(`${url}/watched`)).text();
      if (!page.includes('<p>waiting</p>')) throw new Error('the page shows no phase');
    }
  };
  await render(200);
  const before = await server();
  await render(1_000);
  const after = await server();
  const grownMB = (after.heapBytes - before.heapBytes) / 1e6;
  console.log(`  1,000 renders: ${after.timers - before.timers} more timers, ${grownMB.toFixed(1)} MB more heap`);
  if (after.timers > before.timers + 5) throw new Error(`${after.timers - before.timers} timers after 1,000 renders`);
  if (grownMB > 20) throw new Error(`${grownMB} MB after 1,000 renders`);
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
    for (const [prompt, last] of [
      ['A crow that steals the crown', 'Change the prompt'],
      ['A fox at dawn', 'Ready'],
      ['A lighthouse in a storm [slow:60s]', 'Generating…'],
    ] as const) {
      await page.fill('[name=prompt]', prompt);
      await page.click('button');
      await page.evaluate(untilText(last));
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await page.screenshot?.({ path: join(folder, `${name}.png`) });
    await context.close();
  }
}

/** Expression that resolves when the page shows a text. */
const untilText = (text: string) => `new Promise((resolve) => {
  const look = () => document.body.innerText.includes(${JSON.stringify(text)}) ? resolve() : setTimeout(look, 20);
  look();
})`;

/** Fills in a prompt and chooses a 20 MB image. */
const FILL_FORM = `(async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 300 });
  const png = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  const files = new DataTransfer();
  files.items.add(new File([png, new Uint8Array(20_000_000 - png.size)], 'fox.png', { type: 'image/png' }));
  document.querySelector('[name=image]').files = files.files;
  document.querySelector('[name=prompt]').value = 'a fox at dawn';
})()`;
/** Resolves when the page has stored its run, before sending it. */
const UNTIL_KEPT = `(async () => {
  while (sessionStorage.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
})()`;
/** Resolves when the video is loaded and seekable. */
const UNTIL_SOUGHT = `new Promise((resolve, reject) => {
  const look = () => {
    const video = document.querySelector('video');
    if (!video) return setTimeout(look, 100);
    video.onerror = () => reject(new Error('the video does not load'));
    video.onseeked = () => resolve(video.currentTime);
    if (video.readyState > 0) video.currentTime = 2;
    else video.onloadedmetadata = () => { video.currentTime = 2; };
  };
  look();
})`;

export const suites: Suite[] = [
  { name: 'Next.js, the example, with Node and edge routes', run: theExample },
  { name: 'Next.js, the gallery, in Chromium', run: theGallery },
];
