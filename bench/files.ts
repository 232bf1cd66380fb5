// Uploads and downloads of 200 MB, each in a fresh process to measure its own peak memory.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Figures, formatSpread, interleaved, ratio, serve, spread, table, versionOf } from './frame.js';

const execute = promisify(execFile);
const LIMITED = { timeout: 30_000, killSignal: 'SIGKILL' } as const;
const TRANSFER = fileURLToPath(new URL('./files/transfer.mjs', import.meta.url));
const MB = 1_000_000;
const SIZE = 200 * MB;
const ROUNDS = 7;

const BARE_UPLOAD = 'fetch, openAsBlob';
const OWN_UPLOAD = 'gen-client upload';
const OWN_BLOB_UPLOAD = 'gen-client upload, Blob';
const BARE_DOWNLOAD = 'fetch, piped';
const OWN_DOWNLOAD = 'gen-client saveOutput';
const UPLOADS = [
  BARE_UPLOAD,
  OWN_UPLOAD,
  OWN_BLOB_UPLOAD,
  'fetch, 1 MB stream',
  'node:http, 1 MB stream',
  'openai',
  '@anthropic-ai/sdk',
];
/** A download's lower bound: the bytes are already in memory. */
const DISK = 'disk alone, flushed';
const DOWNLOADS = [BARE_DOWNLOAD, OWN_DOWNLOAD, 'fetch, piped, flushed', DISK];
const UPLOAD_TARGET = { factor: 2.3, peakMB: 140 };
const DOWNLOAD_TARGET = { factor: 1, peakMB: 165 };

/** Wall time and CPU time in milliseconds, and peak memory in MB. */
interface Transfers {
  readonly times: Figures;
  readonly cpu: ReadonlyMap<string, number[]>;
  readonly peak: ReadonlyMap<string, readonly number[]>;
}

/** Measures all candidates of one direction in interleaved rounds. */
async function transfers(ways: readonly string[], rounds: number, path: (way: string) => string): Promise<Transfers> {
  const server = await serve('./files/server.mjs', String(SIZE));
  const cpu = new Map<string, number[]>(ways.map((way) => [way, []]));
  const peak = new Map<string, number[]>(ways.map((way) => [way, []]));
  try {
    const measure = async (way: string) => {
      const file = path(way);
      const child = execute(process.execPath, [TRANSFER, way, server.url, file], LIMITED);
      // A child that doesn't exit is killed. Without a result, it fails the run.
      const { stdout } = await child.catch((error: { stdout?: string }) => ({ stdout: error.stdout || '' }));
      const { ms, cpuMs, peakBytes } = JSON.parse(stdout) as { ms: number; cpuMs: number; peakBytes: number };
      cpu.get(way)?.push(cpuMs);
      peak.get(way)?.push(peakBytes / MB);
      return ms;
    };
    const candidates = ways.map((name) => ({ name, measure: () => measure(name) }));
    return { times: await interleaved(candidates, { rounds, warmups: 1 }), cpu, peak };
  } finally {
    server.end();
  }
}

/** Measures both directions. */
export async function measureFiles(rounds: number): Promise<{ up: Transfers; down: Transfers }> {
  const directory = mkdtempSync(join(tmpdir(), 'gen-bench-'));
  try {
    const source = join(directory, 'source.mp4');
    await writeFile(source, Buffer.alloc(SIZE, 'gen-client'));
    let count = 0;
    const newPath = () => {
      rmSync(join(directory, `${count}.mp4`), { force: true });
      count += 1;
      return join(directory, `${count}.mp4`);
    };
    const up = await transfers(UPLOADS, rounds, () => source);
    return { up, down: await transfers(DOWNLOADS, rounds, newPath) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function rowsOf({ times, cpu, peak }: Transfers, base: string): string[][] {
  return [...times].map(([way, durationsMs]) => {
    const rate = durationsMs.map((ms) => SIZE / MB / (ms / 1000));
    // Throughput is the inverse of time.
    const { median, low, high } = ratio(times, base, way);
    const own = way.startsWith('gen-client') ? 'this build' : undefined;
    const version = /^(fetch|node:|disk)/.test(way) ? 'Node' : (own ?? versionOf(way));
    const cpuRatio = formatSpread(ratio(cpu, base, way));
    const memory = formatSpread(spread(peak.get(way) ?? []), 0);
    return [way, version, formatSpread(spread(rate), 0), formatSpread({ median, low, high }), cpuRatio, memory];
  });
}

function verdict(
  { times, peak }: Transfers,
  { base, own, target }: { base: string; own: string; target: { readonly factor: number; readonly peakMB: number } },
): string {
  const factor = ratio(times, base, own).median;
  const peakMB = spread(peak.get(own) ?? []).median;
  const missed = [factor < target.factor && 'the throughput', peakMB > target.peakMB && 'the memory'].filter(Boolean);
  return `Target for \`${own}\`: at least ${target.factor} times \`${base}\` and a peak of at most ${target.peakMB} MB; measured ${factor.toFixed(2)} and ${peakMB.toFixed(0)} MB${missed.length > 0 ? `, which misses ${missed.join(' and ')}` : ''}.`;
}

function ahead({ times }: Transfers, own: string): string {
  const names = [...times.keys()].filter((way) => way !== own && way !== DISK && ratio(times, own, way).median > 1);
  return names.length > 0 ? `Faster than this SDK: ${names.join(', ')}.` : 'Nothing in the table is faster.';
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const { up, down } = await measureFiles(ROUNDS);
  const columns = ['way', 'version', 'MB a second', 'times bare fetch', 'the same for CPU time', 'peak memory, MB'];
  return [
    '## Files',
    `A file of ${SIZE / MB} MB each way, every transfer in a fresh process against a server in a separate process, ${ROUNDS} interleaved rounds. Ratios above 1 are faster. This SDK's upload sends all three requests; its download also checks the length, flushes the file to the disk, and renames it. Of the two rows below it, the first is a bare fetch that flushes, too, and the second the upper bound: the same bytes from memory to the disk.`,
    '### Upload from a path',
    table(columns, rowsOf(up, BARE_UPLOAD)),
    `${[OWN_UPLOAD, OWN_BLOB_UPLOAD].map((own) => verdict(up, { base: BARE_UPLOAD, own, target: UPLOAD_TARGET })).join(' ')} ${ahead(up, OWN_UPLOAD)}`,
    '### Download to a path',
    table(columns, rowsOf(down, BARE_DOWNLOAD)),
    `${verdict(down, { base: BARE_DOWNLOAD, own: OWN_DOWNLOAD, target: DOWNLOAD_TARGET })} ${ahead(down, OWN_DOWNLOAD)}`,
  ].join('\n\n');
}
