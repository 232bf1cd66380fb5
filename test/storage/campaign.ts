// `npm run campaign -- storage [copies] [seed]`: copies files while the service and the store fail at random, with a seed.
import { pathToFileURL } from 'node:url';
import { copyOutput, s3 } from '../../src/adapters/storage/index.js';
import { GenClient } from '../../src/index.js';
import { hash, LoopbackService } from '../files/loopback-service.js';
import { seeded } from '../support/seeded.js';
import { S3Double, type S3Fault } from './s3-double.js';

const API_KEY = 'sk-campaign-0123456789';
const CONCURRENCY = 25;

export interface CampaignReport {
  /** Objects that contain a complete version of their file, with the SHA-256 that the copy returned. */
  readonly complete: number;
  /** Incomplete objects that a reader found while copies were in flight. */
  readonly incomplete: number;
  /** Number of the reader's checks. */
  readonly checks: number;
  readonly faults: { readonly service: number; readonly store: number };
  readonly puts: number;
  /** Requests when all copies were repeated. */
  readonly repeated: { readonly existed: number; readonly puts: number; readonly downloads: number };
  /** Requests to the store that contained the API key. */
  readonly withApiKey: number;
}

/** Runs `copies` copies twice, `CONCURRENCY` at a time. */
export async function runCampaign(copies: number, seed: number): Promise<CampaignReport> {
  const random = seeded(seed);
  const upTo = (max: number) => Math.floor(random() * max);
  const service = await LoopbackService.start();
  const store = await S3Double.start();
  const client = new GenClient({ apiKey: API_KEY, baseUrl: service.baseUrl, rateLimit: 'off' });
  const versions = new Map<string, Set<string>>();
  let serviceFaults = 0;
  let storeFaults = 0;

  const createBytes = () => {
    const start = upTo(251);
    return Uint8Array.from({ length: 20_000 + upTo(300_000) }, (_, at) => (at * 7 + start) % 251);
  };
  const createJob = (id: string) => {
    const body = createBytes();
    const hashes = new Set([hash(body)]);
    versions.set(id, hashes);
    const cuts = Array.from({ length: upTo(4) }, () => upTo(body.length));
    serviceFaults += cuts.length;
    const output = service.addOutput(id, { body, cutAfter: cuts, ranges: random() < 0.9, chunked: random() < 0.1 });
    let requests = 0;
    output.onGet = () => {
      requests += 1;
      const fails = random() < 0.1;
      if (fails) serviceFaults += 1;
      if (fails) output.rejection = { status: 500, body: { error: { code: 'internal_error' } } };
      else delete output.rejection;
      if (requests !== 2 || random() > 0.1) return;
      serviceFaults += 1;
      const newBytes = createBytes();
      hashes.add(hash(newBytes));
      Object.assign(output, { body: newBytes, etag: `"${hash(newBytes)}"` });
    };
  };
  const faults = (): S3Fault[] => {
    const size = upTo(200_000);
    const all: S3Fault[] = [
      { method: 'PUT', status: 503, code: 'SlowDown' },
      { method: 'PUT', status: 500, code: 'InternalError' },
      { method: 'PUT', status: 409, code: 'ConditionalRequestConflict' },
      { method: 'PUT', resetAfter: size },
      { method: 'PUT', resetAfter: 0 },
      { method: 'PUT', stallAfter: size },
      { method: 'PUT', commitThenDrop: true },
      { method: 'HEAD', status: 503 },
      { method: 'HEAD', resetAfter: 0 },
    ];
    return random() < 0.5 ? all.slice(upTo(all.length)).slice(0, 1) : [];
  };

  const ids = Array.from({ length: copies }, (_, at) => `job_${at}`);
  for (const id of ids) createJob(id);
  const digests = new Map<string, string | undefined>();
  const copy = (id: string) => copyOutput(client, id, s3(store.at(`out/${id}.mp4`)), { retries: 20, timeoutMs: 1_500 });
  const reader = startReader(store, versions);
  await eachOf(ids, async (id) => {
    const newFaults = faults();
    storeFaults += newFaults.length;
    store.faults.push(...newFaults);
    digests.set(id, (await copy(id)).sha256);
  });
  const readerReport = await reader.stop();

  const complete = ids.filter((id) => {
    const object = store.objects.get(`out/${id}.mp4`);
    const digest = object && hash(object.bytes);
    return digest !== undefined && versions.get(id)?.has(digest) && (digests.get(id) ?? digest) === digest;
  }).length;
  const puts = store.sent('PUT').length;

  // Restore changed files, so that a repeated copy transfers nothing.
  for (const id of ids) {
    const object = store.objects.get(`out/${id}.mp4`);
    service.addOutput(id, { body: object?.bytes ?? new Uint8Array() });
  }
  store.faults.length = 0;
  const downloadsBefore = service.downloads.length;
  let existed = 0;
  await eachOf(ids, async (id) => {
    if ((await copy(id)).existed) existed += 1;
  });
  const withApiKey = store.requests.filter((request) => JSON.stringify(request).includes(API_KEY)).length;
  await service.close();
  await store.close();
  return {
    complete,
    ...readerReport,
    faults: { service: serviceFaults, store: storeFaults },
    puts,
    repeated: { existed, puts: store.sent('PUT').length - puts, downloads: service.downloads.length - downloadsBefore },
    withApiKey,
  };
}

/** Reads the newest objects repeatedly, as another client of the store. */
function startReader(store: S3Double, versions: ReadonlyMap<string, ReadonlySet<string>>) {
  let [incomplete, checks, isStopped] = [0, 0, false];
  const check = async () => {
    while (!isStopped) {
      for (const key of [...store.objects.keys()].slice(-10)) {
        const object = await s3(store.at(key))
          .get({ method: 'GET', signal: new AbortController().signal })
          .catch(() => undefined);
        if (object === undefined) continue;
        checks += 1;
        const digest = hash(await object.bytes());
        if (!versions.get(key.replace(/^out\/|\.mp4$/g, ''))?.has(digest)) incomplete += 1;
      }
      await new Promise((done) => setTimeout(done, 20));
    }
  };
  const checking = check();
  return {
    async stop() {
      isStopped = true;
      await checking;
      return { incomplete, checks };
    },
  };
}

async function eachOf(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const queue = [...ids];
  const worker = async () => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) await work(id);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [copies = 500, seed = 1] = process.argv.slice(2).map(Number);
  const start = performance.now();
  const report = await runCampaign(copies, seed);
  console.log(JSON.stringify(report, undefined, 2));
  console.log(`${((performance.now() - start) / 1000).toFixed(0)} s`);
  process.exit(report.complete === copies && report.incomplete === 0 && report.repeated.existed === copies ? 0 : 1);
}
