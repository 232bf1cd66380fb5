// Durations of jobs in earlier commands, for estimating the remaining time of a single job.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CliHost } from './session.js';

/** Milliseconds by kind of job, newest last. */
type Durations = Readonly<Record<string, readonly number[]>>;

const MAX_PER_KIND = 20;

/** Returns the file in the user's cache directory, or undefined if the environment specifies no directory. */
function fileOf({ env }: CliHost): string | undefined {
  const cache = env.XDG_CACHE_HOME || env.LOCALAPPDATA || (env.HOME && join(env.HOME, '.cache'));
  return cache ? join(cache, 'gen-client', 'durations.json') : undefined;
}

/** Reads the durations. Returns an empty table for a missing or damaged file. */
function readDurations(file: string | undefined): Durations {
  try {
    const value: unknown = JSON.parse(readFileSync(file ?? '', 'utf8'));
    return isDurations(value) ? value : {};
  } catch {
    return {};
  }
}

function isDurations(value: unknown): value is Durations {
  const isObject = typeof value === 'object' && value !== null;
  return isObject && Object.values(value).every((all) => Array.isArray(all) && all.every(Number.isFinite));
}

/** Returns the median duration of a kind of job, or undefined until a command has finished one. */
export function expectedDurationMs(host: CliHost, kind: string): number | undefined {
  const sorted = readDurations(fileOf(host))[kind]?.toSorted((a, b) => a - b) ?? [];
  return sorted[Math.floor(sorted.length / 2)];
}

/** Stores a duration. Ignores errors, because only later estimates depend on it. */
export function recordDuration(host: CliHost, kind: string, ms: number): void {
  const file = fileOf(host);
  if (file === undefined || !(ms >= 0)) return;
  const storedDurations = readDurations(file);
  const durations: Durations = {
    ...storedDurations,
    [kind]: [...(storedDurations[kind] ?? []), ms].slice(-MAX_PER_KIND),
  };
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(durations));
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // The disk is read-only or full.
  }
}
