// The sandbox in other runtimes: as a Worker, and on a port of Node, Bun, and Deno.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bundler, inWorkerd, rollup, vite, type Worker, webpack, writeEntry } from './bundle.js';
import { type Context, execute, type Suite, tool } from './suite.js';

/** A Worker may generate random numbers only while it handles a request, so the first one creates the sandbox. */
const WORKER = `
import { createSandbox } from 'gen-client/sandbox';
let sandbox;
export default {
  fetch(request) {
    sandbox ??= createSandbox({ clock: 'manual', apiKey: 'worker-key', baseUrl: 'http://worker.test' });
    return sandbox.handle(request);
  },
};`;

async function makeVideo(worker: Worker): Promise<void> {
  const headers = { authorization: 'Bearer worker-key', 'content-type': 'application/json' };
  const call = async (path: string, body?: object) => {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await worker.dispatchFetch(`http://worker.test${path}`, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  const created = (await (await call('/v1/videos', { prompt: 'a fox' })).json()) as { data: { job: { id: string } } };
  await call('/_sandbox/advance', { ms: 60_000 });
  const file = new Uint8Array(await (await call(`/v1/jobs/${created.data.job.id}/output`)).arrayBuffer());
  expect('an MP4', new TextDecoder().decode(file.subarray(4, 8)), 'ftyp');
  expect('the page', (await (await call('/')).text()).includes('<title>gen-client sandbox</title>'), true);
  const { jobs } = (await (await call('/_sandbox/jobs')).json()) as { jobs: { status: string }[] };
  expect('the job', jobs[0]?.status, 'completed');
}

/** Listens, serves, resets and cuts connections by fault, rejects a port in use, and closes. */
const LISTENER = `
import { createSandbox } from 'gen-client/sandbox';
const sandbox = createSandbox();
const server = await sandbox.listen();
const status = async (path) => (await fetch(server.url + path, { headers: { authorization: 'Bearer ' + sandbox.apiKey } })).status;
const seen = [await status('/v1/models')];
// More than once: Bun and Deno retry a GET automatically if a kept-alive connection breaks.
sandbox.faults.add({ match: { path: '/v1/voices' }, reset: true, times: 10 });
seen.push(await status('/v1/voices').catch(() => 'reset'));
sandbox.faults.clear();
seen.push(await status('/v1/voices'));
sandbox.faults.add({ match: { path: '/v1/models' }, truncate: true, times: 10 });
seen.push(await fetch(server.url + '/v1/models').then((response) => response.text()).catch(() => 'cut'));
sandbox.faults.clear();
seen.push(await sandbox.listen({ port: Number(new URL(server.url).port) }).catch((error) => /in use/.test(error.message)));
await server.close();
seen.push(await status('/v1/models').catch(() => 'closed'));
console.log(JSON.stringify(seen));
`;

async function listening({ project }: Context, program: string, ...args: readonly string[]): Promise<void> {
  writeFileSync(join(project, 'listen.mjs'), LISTENER);
  const printed = await execute(program, [...args, 'listen.mjs'], project);
  expect('what was seen', printed.trim(), '[200,"reset",200,"cut",true,"closed"]');
}

async function bundled({ project }: Context, bundle: Bundler): Promise<void> {
  await bundle(project, writeEntry(project, 'sandbox-worker.mjs', WORKER), 'worker');
}

function expect(what: string, seen: unknown, wanted: unknown): void {
  if (seen !== wanted) throw new Error(`${what}: ${String(seen)} instead of ${String(wanted)}`);
}

const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
const absent = (program: string) => (existsSync(program) ? undefined : `${program} is not installed`);

/** The sandbox's doors. */
export const suites: Suite[] = [
  ...['2023-03-01', '2026-07-01'].map((date): Suite => {
    return {
      name: `sandbox as a Worker, workerd of ${date}`,
      run: ({ project }) => inWorkerd(project, WORKER, makeVideo, { compatibilityDate: date }),
    };
  }),
  { name: 'sandbox behind a port, Node', run: (context) => listening(context, NODE) },
  {
    name: 'sandbox behind a port, Bun',
    missing: absent(tool('bun')),
    run: (context) => listening(context, tool('bun')),
  },
  {
    name: 'sandbox behind a port, Deno',
    missing: absent(tool('deno')),
    run: (context) => listening(context, tool('deno'), 'run', '-A'),
  },
  ...Object.entries({ rollup, vite, webpack }).map(([name, bundle]): Suite => {
    return { name: `sandbox bundled by ${name}`, run: (context) => bundled(context, bundle) };
  }),
];
