// Copies a finished file of 200 MB from the service to an S3-compatible store, each time in a fresh process.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Figures, formatSpread, interleaved, ratio, serve, spread, table, versionOf } from './frame.js';
import { bundleSize, OWN_PROGRAMS } from './size.js';

const execute = promisify(execFile);
const COPY = fileURLToPath(new URL('./storage/copy.mjs', import.meta.url));
const MB = 1_000_000;
const SIZE = 200 * MB;
const ROUNDS = 5;

const BARE = 'fetch to fetch';
const OWN = 'gen-client copyOutput';
const WAYS = [BARE, OWN, '@aws-sdk/lib-storage', '@aws-sdk/client-s3'];

interface CopyResult {
  readonly ms: number;
  readonly grownBytes: number;
  readonly requests: number;
}

interface Copies {
  readonly times: Figures;
  readonly grown: ReadonlyMap<string, readonly number[]>;
  readonly requests: ReadonlyMap<string, number>;
}

async function measureCopies(): Promise<Copies> {
  const [service, store] = await Promise.all([serve('./files/server.mjs', String(SIZE)), serve('./storage/sink.mjs')]);
  const grown = new Map<string, number[]>(WAYS.map((way) => [way, []]));
  const requests = new Map<string, number>();
  const measure = async (way: string) => {
    const { stdout } = await execute(process.execPath, [COPY, way, service.url, store.url]);
    const figures = JSON.parse(stdout) as CopyResult;
    grown.get(way)?.push(figures.grownBytes / MB);
    requests.set(way, figures.requests);
    return figures.ms;
  };
  try {
    const candidates = WAYS.map((name) => ({ name, measure: () => measure(name) }));
    return { times: await interleaved(candidates, { rounds: ROUNDS, warmups: 1 }), grown, requests };
  } finally {
    service.end();
    store.end();
  }
}

const PEERS = fileURLToPath(new URL('./peers/', import.meta.url));

/** Returns the gzipped bytes of each copy's code: without the client for this SDK, in total for the others. */
async function sizes(): Promise<ReadonlyMap<string, number | undefined>> {
  const client = await bundleSize({ code: OWN_PROGRAMS.client });
  const own = await bundleSize({ code: OWN_PROGRAMS.copyToS3 });
  const s3 = "export { S3Client, PutObjectCommand } from '@aws-sdk/client-s3';";
  const upload = "export { S3Client } from '@aws-sdk/client-s3'; export { Upload } from '@aws-sdk/lib-storage';";
  return new Map([
    [OWN, own - client],
    ['@aws-sdk/client-s3', await bundleSize({ code: s3, from: PEERS }).catch(() => undefined)],
    ['@aws-sdk/lib-storage', await bundleSize({ code: upload, from: PEERS }).catch(() => undefined)],
  ]);
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const { times, grown, requests } = await measureCopies();
  const added = await sizes();
  const rows = WAYS.map((way) => {
    const size = added.get(way);
    return [
      way,
      way === BARE ? 'Node' : way === OWN ? 'this build' : versionOf(way),
      requests.get(way) ?? '',
      formatSpread(spread(times.get(way) ?? []), 0),
      formatSpread(ratio(times, way, BARE)),
      formatSpread(spread(grown.get(way) ?? []), 0),
      way === BARE ? '–' : size === undefined ? 'needs Node' : (size / 1000).toFixed(1),
    ];
  });
  const columns = ['way', 'version', 'requests', 'ms', 'times fetch to fetch', 'growth at peak, MB', 'code, kB'];
  return [
    '## Copies to a store',
    `A file of ${SIZE / MB} MB from the service to an S3-compatible store, every copy in a fresh process, with the service and the store in separate processes, ${ROUNDS} interleaved rounds. Only this SDK checks whether the object exists, resumes an interrupted download, and returns the SHA-256.`,
    table(columns, rows),
    'Code is minified and gzipped. For this SDK, it is what the copy adds to a program with a client; 2.6 kB of it sign requests.',
  ].join('\n\n');
}
