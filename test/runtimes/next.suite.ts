// A Next.js app with the package in a Node route and in an edge route: built offline, started, and called.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { type Context, execute, judge, type Step, type Suite } from './suite.js';

const MODULES = fileURLToPath(new URL('./node_modules/', import.meta.url));
const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));

async function inNext({ project, service }: Context): Promise<void> {
  const app = join(project, 'next-app');
  const config = JSON.stringify(service.config);
  const run = `import { runScenario } from '../../../scenario.mjs';\nexport const POST = async () => Response.json(await runScenario(${config}));\n`;
  const files = {
    'package.json': '{ "name": "next-app", "private": true, "type": "module" }',
    'app/layout.js':
      'export default function Layout({ children }) { return <html lang="en"><body>{children}</body></html>; }',
    'app/page.js': 'export default function Page() { return <p>gen-client</p>; }',
    'app/api/node/route.js': run,
    'app/api/edge/route.js': `${run}export const runtime = 'edge';\n`,
    'app/api/webhooks/route.js': `import { createWebhookHandler } from 'gen-client/webhooks';\nexport const POST = createWebhookHandler({ secret: '${service.config.webhook.secret}' });\n`,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(app, name)), { recursive: true });
    writeFileSync(join(app, name), text);
  }
  // Copied, because the bundler does not follow links out of the app.
  for (const name of ['gen-client', 'ky', 'p-retry', 'is-network-error', 'zod']) {
    cpSync(join(project, 'node_modules', name), join(app, 'node_modules', name), { recursive: true });
  }
  for (const name of [
    'next',
    'react',
    'react-dom',
    '@next',
    '@swc',
    'styled-jsx',
    'scheduler',
    'client-only',
    'postcss',
    'nanoid',
    'picocolors',
    'source-map-js',
    'caniuse-lite',
    'baseline-browser-mapping',
  ]) {
    cpSync(join(MODULES, name), join(app, 'node_modules', name), { recursive: true });
  }
  cpSync(join(project, 'scenario.mjs'), join(app, 'scenario.mjs'));
  const told = await execute(NODE, [join(app, 'node_modules/next/dist/bin/next'), 'build'], app);
  const warnings = told
    .split('\n')
    .filter((line) => /gen-client|Critical dependency|Module not found/i.test(line) && !line.includes('/api/'));
  if (warnings.length > 0) throw new Error(warnings.join('\n'));
  await whileServed(app, async (url) => {
    for (const runtime of ['node', 'edge']) {
      judge((await (await fetch(`${url}/api/${runtime}`, { method: 'POST' })).json()) as Step[]);
      service.settle();
    }
    const { body, headers } = service.config.webhook;
    for (const [content, status] of [
      [body, 200],
      [`${body} `, 400],
    ] as const) {
      const answer = await fetch(`${url}/api/webhooks`, { method: 'POST', body: content, headers });
      if (Math.floor(answer.status / 100) !== status / 100) throw new Error(`a webhook was answered ${answer.status}`);
    }
  });
}

/** Serves the built app on a free port for as long as `use` takes. */
async function whileServed(app: string, use: (url: string) => Promise<void>): Promise<void> {
  const port = await freePort();
  const server = spawn(
    NODE,
    [join(app, 'node_modules/next/dist/bin/next'), 'start', '--port', String(port), '--hostname', '127.0.0.1'],
    {
      cwd: app,
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' },
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

/** The framework that the webhooks' and the clients' routes most often live in. */
export const suites: Suite[] = [{ name: 'Next.js, Node and edge routes', run: inNext }];
