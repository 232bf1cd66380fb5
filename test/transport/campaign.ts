// Sends creates through thousands of seeded faults: `npm run campaign -- creates --creates 5000 --seed 1`.
// Backoffs, waits, and deadlines run ten times as fast as real time, on a real network.
import { fork } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readConfig } from '../../src/client/config.js';
import { createNamespace } from '../../src/client/create.js';
import { Uploads, uploadSteps } from '../../src/client/uploads.js';
import { type Clock, steady, systemClock } from '../../src/runtime/clock.js';
import { createTransport } from '../../src/transport/create-transport.js';
import { createJobWaits } from '../../src/waiting/job-waits.js';

const { values } = parseArgs({
  options: {
    creates: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
});
const creates = Number(values.creates);
const CONCURRENCY = 200;
const SPEED = 10;

const fastClock: Clock = {
  now: () => systemClock.now() * SPEED,
  after: (ms, fire) => systemClock.after(ms / SPEED, fire),
};
const limits = { 'videos.create': { limit: Number.POSITIVE_INFINITY } };
const counts = { attempts: 0, retries: 0, waits: 0 };
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const service = fork(fileURLToPath(new URL('campaign-service.ts', import.meta.url)), [values.seed]);
const nextMessage = <T>(): Promise<T> =>
  new Promise((resolve) => service.once('message', (message) => resolve(message as T)));
const { servers } = await nextMessage<{ servers: { url: string; apiKey: string }[] }>();

const { signal } = new AbortController();
const creators = servers.flatMap(({ url, apiKey }) => {
  const config = readConfig({
    apiKey,
    baseUrl: url,
    limits,
    timeoutMs: 4_000,
    maxRetries: 100,
    hooks: {
      onRequest: () => {
        counts.attempts += 1;
      },
      onRetry: () => {
        counts.retries += 1;
      },
      onWait: () => {
        counts.waits += 1;
      },
    },
  });
  const transport = createTransport({ ...config, clock: steady(fastClock) });
  const noWait = () => Promise.reject(new Error('no wait expected'));
  const jobWaits = createJobWaits({ config, transport, pollJob: noWait, scheduling: noWait });
  const creator = { transport, jobWaits, uploads: uploadSteps(new Uploads(transport), transport) };
  const [videos, images] = [createNamespace(creator, 'videos'), createNamespace(creator, 'images')];
  return [
    (prompt: string) => videos.create({ prompt }, { signal }),
    (prompt: string) => images.create({ prompt }, { signal }),
  ];
});

const keys = new Set<string>();
const jobs = new Set<string>();
const errors: string[] = [];
let started = 0;
let quoted = 0;

async function worker(upTo: number): Promise<void> {
  while (started < upTo) {
    const number = started++;
    try {
      const created = await creators[number % creators.length]?.(`campaign ${number}`);
      keys.add(created?.idempotencyKey ?? '');
      jobs.add(`${number % creators.length < 2} ${created?.job.id}`);
      quoted += created?.quoted_token_cost ?? Number.NaN;
    } catch (error) {
      errors.push(String(error));
    }
  }
}

async function run(upTo: number): Promise<number> {
  await Promise.all(Array.from({ length: CONCURRENCY }, () => worker(upTo)));
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const startMs = performance.now();
const heapEarly = await run(Math.floor(creates / 5));
const heapLate = await run(creates);
const seconds = (performance.now() - startMs) / 1_000;
const timers = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
service.send('figures');
const figures = await nextMessage<{
  jobs: number;
  charged: number;
  reserved: number;
  rawFaults: Record<string, number>;
}>();
service.disconnect();

const report = {
  creates,
  jobsOnTheService: figures.jobs,
  jobsSeen: jobs.size,
  keys: keys.size,
  tokensQuoted: quoted,
  tokensCharged: figures.charged,
  tokensReserved: figures.reserved,
  errors: errors.length,
  ...counts,
  rawFaults: figures.rawFaults,
  listenersLeft: getEventListeners(signal, 'abort').length,
  timersLeft: timers,
  unhandledRejections: unhandled.length,
  heapGrowthMb: Math.round((heapLate - heapEarly) / 10_486) / 100,
  seconds: Math.round(seconds * 10) / 10,
};
const isClean =
  report.jobsOnTheService === creates &&
  report.jobsSeen === creates &&
  report.keys === creates &&
  report.tokensCharged === quoted &&
  report.errors + report.tokensReserved + report.listenersLeft + report.timersLeft + report.unhandledRejections === 0;
process.stdout.write(`${JSON.stringify(report, undefined, values.json ? 0 : 2)}\n`);
if (!isClean) {
  process.stderr.write(
    `${errors.slice(0, 5).join('\n')}\nThe campaign failed: it lost a job, charged one twice, or left timers or listeners.\n`,
  );
  process.exitCode = 1;
}
