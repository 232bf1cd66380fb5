// The receivers of examples/receivers that need other runtimes, with deliveries from the sandbox over HTTP.
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { checkReceiver, SECRETS } from '../webhooks/check-receiver.js';
import { withReceiver } from '../webhooks/run-receiver.js';
import { inWorkerd, type Worker } from './bundle.js';
import { type Context, type Suite, tool } from './suite.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/receivers/', import.meta.url));
const DENO = '--no-remote --cached-only --allow-net --allow-env --allow-read --node-modules-dir=manual'.split(' ');

/** Copies an example next to the installed tarball, and returns its name. */
function place(project: string, example: string): string {
  copyFileSync(join(EXAMPLES, example), join(project, example));
  return example;
}

function asProgram(example: string, program: string, ...args: readonly string[]) {
  return ({ project }: Context) =>
    withReceiver({ program, args: [...args, place(project, example)], cwd: project }, checkReceiver);
}

async function asWorker({ project }: Context): Promise<void> {
  let printed = '';
  const note = (stream: Readable) => stream.on('data', (text) => (printed += text));
  const code = `export { default } from './${place(project, 'cloudflare-worker.ts')}';`;
  const hold = async ({ ready }: Worker) =>
    checkReceiver({ url: new URL('/webhooks', await ready).href, printed: () => printed });
  await inWorkerd(project, code, hold, {
    host: '127.0.0.1',
    port: await freePort(),
    bindings: { GEN_WEBHOOK_SECRET: `${SECRETS.next},${SECRETS.previous}` },
    handleRuntimeStdio: (...streams: Readable[]) => streams.forEach(note),
  });
}

const absent = (name: string) => (existsSync(tool(name)) ? undefined : `${name} is not installed`);

export const suites: Suite[] = [
  { name: 'receiver in Bun', missing: absent('bun'), run: asProgram('bun.ts', tool('bun')) },
  { name: 'receiver in Deno', missing: absent('deno'), run: asProgram('deno.ts', tool('deno'), 'run', ...DENO) },
  { name: 'receiver in workerd', missing: absent('workerd'), run: asWorker },
];
