// Measures a file store through a client, with a service that responds immediately. Arguments: the package's bundle, the
// store's path, and the number of finished jobs. Prints one JSON document.
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [bundle, path, jobCount] = process.argv.slice(2);
const { GenClient, fileStore } = await import(pathToFileURL(bundle).href);
const SEQUENTIAL = 400;
const AT_ONCE = 64;

let jobs = 0;
const jobsById = new Map();
const client = new GenClient({
  ...{ apiKey: 'sk_bench', baseUrl: 'https://bench.example', account: 'main', rateLimit: 'off' },
  store: fileStore(path),
  fetch: async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.pathname.startsWith('/v1/jobs/'))
      return Response.json({ job: jobsById.get(url.pathname.split('/').at(-1)) });
    const key = new Headers(init?.headers ?? input.headers).get('idempotency-key');
    const job = {
      ...{ id: `job_${++jobs}`, status: 'completed', quotedTokenCost: 2, finalTokenCost: 2, key },
      providerOutputUrl: 'https://bench.example/file',
    };
    jobsById.set(job.id, job);
    return Response.json({ job, quoted_token_cost: 2 });
  },
});

async function finish() {
  const { job } = await client.images.create({ prompt: 'a fox' }, { idempotencyKey: crypto.randomUUID() });
  await client.markStored(await client.waitForJob(job.id, { pollIntervalMs: 1 }));
  jobsById.delete(job.id);
}

const times = [];
for (let create = 0; create < SEQUENTIAL; create++) {
  const startMs = performance.now();
  const { job } = await client.images.create({ prompt: 'a fox' });
  times.push(performance.now() - startMs);
  await client.markStored(await client.waitForJob(job.id, { pollIntervalMs: 1 }));
}
times.sort((a, b) => a - b);

const startMs = performance.now();
let left = Number(jobCount);
const worker = async () => {
  while (left-- > 0) await finish();
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));
const seconds = (performance.now() - startMs) / 1_000;
await fileStore(path).close();
const bytes = readdirSync(dirname(path))
  .filter((name) => name.startsWith(basename(path)))
  .reduce((sum, name) => sum + statSync(join(dirname(path), name)).size, 0);
console.log(
  JSON.stringify({ createMs: times[SEQUENTIAL / 2], slowMs: times[Math.floor(SEQUENTIAL * 0.99)], seconds, bytes }),
);
process.exit();
