// The sandbox under load from another process over a real port: requests per second, and memory.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { formatSpread, spread, table } from './frame.js';

const { createSandbox }: typeof import('../src/sandbox/index.js') = await import(
  new URL('../dist/sandbox.js', import.meta.url).href
);

const ROUNDS = 9;
const WARMUPS = 2;
const REQUESTS = 2000;
const AT_ONCE = 32;
const JOBS = 10_000;
/** The targets (README, "The sandbox"). */
const TARGETS = { perSecond: 1500, megabytes: 300, stateMs: 50, waitMs: 200 } as const;

interface SandboxAddress {
  readonly url: string;
  readonly apiKey: string;
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const { reads, creates } = await withSandbox(async (send) => {
    const first = JSON.parse(await send('POST', '/v1/videos')) as { data: { job: { id: string } } };
    const read = () => send('GET', `/v1/jobs/${first.data.job.id}`);
    const create = () => send('POST', '/v1/images');
    const figures: { reads: number[]; creates: number[] } = { reads: [], creates: [] };
    for (let round = -WARMUPS; round < ROUNDS; round += 1) {
      const [readsPerSecond, createsPerSecond] = [await perSecond(read, REQUESTS), await perSecond(create, REQUESTS)];
      if (round < 0) continue;
      figures.reads.push(readsPerSecond);
      figures.creates.push(createsPerSecond);
    }
    return figures;
  });
  const { megabytes, states } = await withSandbox(async (send, server) => {
    await perSecond(() => send('POST', '/v1/videos'), JOBS);
    server.send('memory');
    const [{ rss }] = (await once(server, 'message')) as [{ rss: number }];
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      times.push(await milliseconds(() => send('GET', '/_sandbox/state')));
    return { megabytes: Math.round(rss / 2 ** 20), states: times };
  });
  const waits: number[] = [];
  for (let round = -WARMUPS; round < ROUNDS; round += 1) {
    const client = createSandbox().client();
    const ms = await milliseconds(() => client.videos.createAndWait({ prompt: 'a fox at dawn' }));
    if (round >= 0) waits.push(ms);
  }
  const rows = [
    ['GET /v1/jobs/{id}, a second', formatSpread(spread(reads), 0), `at least ${TARGETS.perSecond}`],
    ['POST /v1/images, a second', formatSpread(spread(creates), 0), `at least ${TARGETS.perSecond}`],
    [`memory of a process after ${JOBS} jobs, MB`, megabytes, `at most ${TARGETS.megabytes}`],
    [`state of the page with ${JOBS} jobs, ms`, formatSpread(spread(states), 1), `at most ${TARGETS.stateMs}`],
    ['createAndWait of sandbox.client(), in process, ms', formatSpread(spread(waits), 0), `at most ${TARGETS.waitMs}`],
  ];
  return `## The sandbox

\`sandbox.listen()\` in a separate process, with ${AT_ONCE} open connections from another one. Every request is authenticated, logged, and answered in full. The client runs on the same machine and costs about as much as the server.

${table(['', 'measured', 'target'], rows)}`;
}

type Send = (method: 'GET' | 'POST', path: string) => Promise<string>;

/** Runs `work` against a new sandbox. */
async function withSandbox<T>(work: (send: Send, server: ChildProcess) => Promise<T>): Promise<T> {
  const server = fork(fileURLToPath(new URL('sandbox/server.ts', import.meta.url)));
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  try {
    const [service] = (await once(server, 'message')) as [SandboxAddress];
    return await work(sender(service, agent), server);
  } finally {
    agent.destroy();
    server.disconnect();
  }
}

function sender({ url, apiKey }: SandboxAddress, agent: Agent): Send {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return (method, path) =>
    new Promise((resolve, reject) => {
      const call = request(`${url}${path}`, { method, headers, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))));
      });
      call.on('error', reject);
      call.end(method === 'POST' ? '{"prompt":"a fox at dawn"}' : undefined);
    });
}

async function milliseconds(call: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await call();
  return performance.now() - start;
}

async function perSecond(call: () => Promise<unknown>, calls: number): Promise<number> {
  let left = calls;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await call();
    }),
  );
  return (calls * 1000) / (performance.now() - start);
}
