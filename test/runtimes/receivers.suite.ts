// The receivers in examples/receivers for runtimes other than Node. A sandbox delivers events to them over HTTP.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { checkReceiver, SECRETS } from '../webhooks/check-receiver.js';
import { withReceiver } from '../webhooks/run-receiver.js';
import { runInWorkerd, type Worker } from './bundle.js';
import { type Context, ifMissing, type Suite, tool } from './suite.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/receivers/', import.meta.url));
const DENO = '--no-remote --cached-only --allow-net --allow-env --allow-read --node-modules-dir=manual'.split(' ');

/** Copies an example next to the installed tarball, and returns its name. */
function copyExample(project: string, example: string): string {
  copyFileSync(join(EXAMPLES, example), join(project, example));
  return example;
}

function asProgram(example: string, program: string, ...args: readonly string[]) {
  return ({ project }: Context) =>
    withReceiver({ program, args: [...args, copyExample(project, example)], cwd: project }, checkReceiver);
}

async function asWorker({ project }: Context): Promise<void> {
  let output = '';
  const record = (stream: Readable) => stream.on('data', (text) => (output += text));
  const code = `export { default } from './${copyExample(project, 'cloudflare-worker.ts')}';`;
  const check = async ({ ready }: Worker) =>
    checkReceiver({ url: new URL('/webhooks', await ready).href, printed: () => output });
  await runInWorkerd(project, code, check, {
    host: '127.0.0.1',
    port: await freePort(),
    bindings: { GEN_WEBHOOK_SECRET: `${SECRETS.next},${SECRETS.previous}` },
    handleRuntimeStdio: (...streams: Readable[]) => streams.forEach(record),
  });
}

export const suites: Suite[] = [
  { name: 'receiver in Bun', skip: ifMissing(tool('bun')), run: asProgram('bun.ts', tool('bun')) },
  { name: 'receiver in Deno', skip: ifMissing(tool('deno')), run: asProgram('deno.ts', tool('deno'), 'run', ...DENO) },
  { name: 'receiver in workerd', skip: ifMissing(tool('workerd')), run: asWorker },
];
