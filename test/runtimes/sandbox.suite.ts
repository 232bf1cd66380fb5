// The sandbox as a Worker, and on a port in Node, Bun, and Deno.
import assert from 'node:assert/strict';
import { type Bundler, rollup, runInWorkerd, vite, type Worker, webpack, writeEntry } from './bundle.js';
import { NODE } from './nodes.js';
import { type Context, execute, ifMissing, type Suite, tool } from './suite.js';

/** The first request creates the sandbox, because Workers can't generate random numbers at import. */
const WORKER = `
import { createSandbox } from 'gen-client/sandbox';
let sandbox;
export default {
  fetch(request) {
    sandbox ??= createSandbox({ clock: 'manual', apiKey: 'worker-key', baseUrl: 'http://worker.test' });
    return sandbox.handle(request);
  },
};`;

async function createVideo(worker: Worker): Promise<void> {
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
  assert.equal(new TextDecoder().decode(file.subarray(4, 8)), 'ftyp', 'the output is an MP4');
  assert.match(await (await call('/')).text(), /<title>gen-client sandbox<\/title>/);
  const { jobs } = (await (await call('/_sandbox/jobs')).json()) as { jobs: { status: string }[] };
  assert.equal(jobs[0]?.status, 'completed');
}

/** Serves requests, injects connection faults, rejects a port in use, and closes. */
const LISTENER = `
import { createSandbox } from 'gen-client/sandbox';
const sandbox = createSandbox();
const server = await sandbox.listen();
const status = async (path) => (await fetch(server.url + path, { headers: { authorization: 'Bearer ' + sandbox.apiKey } })).status;
const results = [await status('/v1/models')];
// Repeated, because Bun and Deno retry a GET if a kept-alive connection breaks.
sandbox.faults.add({ match: { path: '/v1/voices' }, reset: true, times: 10 });
results.push(await status('/v1/voices').catch(() => 'reset'));
sandbox.faults.clear();
results.push(await status('/v1/voices'));
sandbox.faults.add({ match: { path: '/v1/models' }, truncate: true, times: 10 });
results.push(await fetch(server.url + '/v1/models').then((response) => response.text()).catch(() => 'truncated'));
sandbox.faults.clear();
results.push(await sandbox.listen({ port: Number(new URL(server.url).port) }).catch((error) => /in use/.test(error.message)));
await server.close();
results.push(await status('/v1/models').catch(() => 'closed'));
console.log(JSON.stringify(results));
`;

async function listenOnPort({ project }: Context, program: string, ...args: readonly string[]): Promise<void> {
  const entry = writeEntry(project, 'listen.mjs', LISTENER);
  const output = await execute(program, [...args, entry], project);
  assert.deepEqual(JSON.parse(output), [200, 'reset', 200, 'truncated', true, 'closed']);
}

async function bundleWorker({ project }: Context, bundle: Bundler): Promise<void> {
  await bundle(project, writeEntry(project, 'sandbox-worker.mjs', WORKER), 'worker');
}

export const suites: Suite[] = [
  ...['2023-03-01', '2026-07-01'].map((date): Suite => {
    return {
      name: `sandbox as a Worker, workerd of ${date}`,
      run: ({ project }) => runInWorkerd(project, WORKER, createVideo, { compatibilityDate: date }),
    };
  }),
  { name: 'sandbox on a port, Node', run: (context) => listenOnPort(context, NODE) },
  {
    name: 'sandbox on a port, Bun',
    skip: ifMissing(tool('bun')),
    run: (context) => listenOnPort(context, tool('bun')),
  },
  {
    name: 'sandbox on a port, Deno',
    skip: ifMissing(tool('deno')),
    run: (context) => listenOnPort(context, tool('deno'), 'run', '-A'),
  },
  ...Object.entries({ rollup, vite, webpack }).map(([name, bundle]): Suite => {
    return { name: `sandbox bundled by ${name}`, run: (context) => bundleWorker(context, bundle) };
  }),
];
