// Counts the functions of this package that a call runs through, with V8's precise coverage, on a warm client.
import { Session } from 'node:inspector';
import { GenClient } from '../../src/index.js';
import { created, json } from '../transport/support.js';

/** How many functions ran, in how many files. */
export interface Count {
  readonly functions: number;
  readonly files: number;
  /** The functions by file, as `file: name name`. */
  readonly names: readonly string[];
}

const session = new Session();
session.connect();

/** The functions of `src` that ran since the last time it was asked, as `file#name@offset`. */
function ranSince(): Set<string> {
  const ran = new Set<string>();
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error) throw error;
    for (const { url, functions } of taken.result) {
      const file = /\/src\/(.*\.ts)/.exec(url)?.[1];
      if (file === undefined) continue;
      for (const { functionName, ranges } of functions) {
        const [range] = ranges;
        if (range && range.count > 0) ran.add(`${file}#${functionName || '(anonymous)'}@${range.startOffset}`);
      }
    }
  });
  return ran;
}

function countOf(ran: ReadonlySet<string>): Count {
  const byFile = new Map<string, string[]>();
  for (const one of ran) {
    const [file = '', name = ''] = one.split('#');
    byFile.set(file, [...(byFile.get(file) ?? []), name.replace(/@.*/, '')]);
  }
  return {
    functions: ran.size,
    files: byFile.size,
    names: [...byFile].map(([file, names]) => `${file}: ${names.join(' ')}`),
  };
}

const done = { id: 'job_1', status: 'completed', mediaType: 'video', providerOutputUrl: 'https://cdn.test/a.mp4' };
let before: Set<string> | undefined;
/** Answers like the service. The first request of a measured call tells what ran before it. */
async function service(_url: string, init: RequestInit): Promise<Response> {
  before ??= ranSince();
  return init.method === 'POST' ? json(created()) : json({ success: true, data: { job: done } });
}

const client = new GenClient({
  apiKey: 'sk-count-functions',
  baseUrl: 'https://service.test',
  fetch: service,
  rateLimit: 'wait',
});

const calls: Record<string, () => Promise<unknown>> = {
  'videos.create': () => client.videos.create({ prompt: 'a fox at dawn' }),
  waitForJob: () => client.waitForJob('job_1'),
  createAndWait: () => client.videos.createAndWait({ prompt: 'a fox at dawn' }, { pollIntervalMs: 20 }),
};

const counts: Record<string, { readonly before: Count; readonly whole: Count }> = {};
for (const call of Object.values(calls)) for (let warm = 0; warm < 2; warm++) await call();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
for (const [name, call] of Object.entries(calls)) {
  await call();
  ranSince();
  before = undefined;
  await call();
  const after = ranSince();
  const first: ReadonlySet<string> = before ?? new Set();
  counts[name] = { before: countOf(first), whole: countOf(new Set([...first, ...after])) };
}
process.stdout.write(JSON.stringify(counts));
