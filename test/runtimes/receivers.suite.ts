// The receivers of examples/receivers that need a runtime of their own, with the sandbox delivering over HTTP.
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { holdReceiver, SECRETS } from '../webhooks/hold-receiver.js';
import { withReceiver } from '../webhooks/run-receiver.js';
import { esbuild } from './bundle.js';
import { type Context, need, type Suite, tool } from './suite.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/receivers/', import.meta.url));
const DENO = '--no-remote --cached-only --allow-net --allow-env --allow-read --node-modules-dir=manual'.split(' ');

/** Puts an example beside the installed tarball; its name there. */
function place(project: string, example: string): string {
  copyFileSync(join(EXAMPLES, example), join(project, example));
  return example;
}

function asProgram(example: string, program: string, ...args: readonly string[]) {
  return ({ project }: Context) =>
    withReceiver({ program, args: [...args, place(project, example)], cwd: project }, holdReceiver);
}

interface Miniflare {
  readonly ready: Promise<URL>;
  dispose(): Promise<void>;
}

async function inWorkerd({ project }: Context): Promise<void> {
  const script = await esbuild(project, place(project, 'cloudflare-worker.ts'), 'worker');
  const { Miniflare } = await need<{ Miniflare: new (options: object) => Miniflare }>('miniflare');
  let printed = '';
  const note = (stream: Readable) => stream.on('data', (text) => (printed += text));
  const worker = new Miniflare({
    modules: true,
    script,
    compatibilityDate: '2026-07-01',
    host: '127.0.0.1',
    port: await freePort(),
    bindings: { GEN_WEBHOOK_SECRET: `${SECRETS.next},${SECRETS.before}` },
    handleRuntimeStdio: (...streams: Readable[]) => streams.forEach(note),
  });
  try {
    await holdReceiver({ url: new URL('/webhooks', await worker.ready).href, printed: () => printed });
  } finally {
    await worker.dispose();
  }
}

const absent = (name: string) => (existsSync(tool(name)) ? undefined : `${name} is not installed`);

/** The receivers of Bun, Deno and Cloudflare. */
export const suites: Suite[] = [
  { name: 'receiver in Bun', missing: absent('bun'), run: asProgram('bun.ts', tool('bun')) },
  { name: 'receiver in Deno', missing: absent('deno'), run: asProgram('deno.ts', tool('deno'), 'run', ...DENO) },
  { name: 'receiver in workerd', missing: absent('workerd'), run: inWorkerd },
];
