// Shared by all benchmarks: interleaved rounds, paired ratios, tables, and the peers' packages.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, cpus, platform, totalmem } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Collects garbage synchronously. */
export const collectGarbage: NodeJS.GCFunction = runInNewContext('gc');

/** An implementation of the same work. */
export interface Candidate {
  readonly name: string;
  /** Runs the work once and returns the result, for example in milliseconds or bytes. */
  readonly measure: () => Promise<number> | number;
}

/** The results of each candidate, one per round, in the same order. */
export type Figures = ReadonlyMap<string, readonly number[]>;

/** A median with the range of the middle 80% of the results. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Measures every candidate once per round. Each round starts with a different one, so that drift affects all equally. */
export async function interleaved(
  candidates: readonly Candidate[],
  { rounds, warmups = 1 }: { readonly rounds: number; readonly warmups?: number },
): Promise<Figures> {
  const figures = new Map<string, number[]>(candidates.map(({ name }) => [name, []]));
  for (let round = -warmups; round < rounds; round += 1) {
    for (let turn = 0; turn < candidates.length; turn += 1) {
      const candidate = candidates[(turn + Math.abs(round)) % candidates.length];
      const figure = await candidate?.measure();
      if (round >= 0 && candidate && figure !== undefined) figures.get(candidate.name)?.push(figure);
    }
  }
  return figures;
}

/** Returns the median and the middle 80%. */
export function spread(figures: readonly number[]): Spread {
  const sorted = [...figures].sort((a, b) => a - b);
  const quantile = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: quantile(0.5), low: quantile(0.1), high: quantile(0.9) };
}

/** Returns the spread of `name` relative to `base`, compared within each round because a slow round affects both. */
export function ratio(figures: Figures, name: string, base: string): Spread {
  const [values, baseValues] = [figures.get(name) ?? [], figures.get(base) ?? []];
  return spread(values.map((figure, round) => figure / (baseValues[round] ?? Number.NaN)));
}

/** Formats a spread like `1.12 (1.08–1.20)`. */
export function formatSpread({ median, low, high }: Spread, digits = 2): string {
  return `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

/** Formats a Markdown table. */
export function table(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map((_, column) => (column === 0 ? '---' : '---:'))), ...rows.map(line)].join(
    '\n',
  );
}

/** Returns the target of `own`, its result, and the `peers` that are ahead. */
export function verdict(
  figures: Figures,
  { own, base, max, baseName, peers }: Record<'own' | 'base' | 'baseName', string> & { max: number; peers: string[] },
): string {
  const { median } = ratio(figures, own, base);
  const ahead = peers.filter((name) => ratio(figures, name, own).median < 1);
  const missed = median > max ? ', which misses it' : '';
  const others = ahead.length > 0 ? `Ahead of this SDK: ${ahead.join(', ')}.` : 'No peer is ahead.';
  return `Target: at most ${max} times ${baseName}; measured ${median.toFixed(2)}${missed}. ${others}`;
}

/** Starts a server in its own process. Returns the URL that it prints, and a function that stops it. */
export async function serve(file: string, ...args: string[]) {
  const program = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: url.toString().trim(), end: () => void child.kill() };
}

const PEERS = new URL('./peers/', import.meta.url);
const fromPeers = createRequire(new URL('package.json', PEERS));

/** Loads a peer's package from bench/peers. The caller declares the part of its type that it uses. */
export async function peer<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(fromPeers.resolve(name)).href)) as T;
}

/** Returns the installed version of a package, from bench/peers or the root. */
export function versionOf(name: string): string {
  for (const base of [PEERS, new URL('../', import.meta.url)]) {
    try {
      const manifest = readFileSync(new URL(`node_modules/${name}/package.json`, base), 'utf8');
      return (JSON.parse(manifest) as { version: string }).version;
    } catch {
      // Try the other folder.
    }
  }
  throw new Error(`${name} is not installed; run npm ci --prefix bench/peers`);
}

/** Describes the machine, without anything that identifies its owner. */
export function machine(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, ${memory} GB, ${platform()} ${arch()}, Node ${process.versions.node}`;
}
