import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { vi } from 'vitest';
import { ensureBuilt, ROOT } from '../support/build.js';
import { type BinaryOutcome, type Outcome, type Running, type RunOptions, shown } from './run-cli.js';

/** A process under way. */
export interface Spawned extends Running {
  /** Ends it: by default at once, without a word. */
  kill(signal?: NodeJS.Signals): void;
}

export const BIN = join(ROOT, 'dist/cli.js');

/** Builds the bin once for all test files. */
export const buildBin = ensureBuilt;

/** Starts the built bin. Nothing of this process's environment but PATH gets there. */
export function spawnCli(words: readonly string[], { env = {}, cwd, input }: RunOptions = {}): Spawned {
  const child: ChildProcess = spawn(process.execPath, [BIN, ...words], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  const chunks: Buffer[] = [];
  child.stdout?.on('data', (chunk) => {
    chunks.push(chunk);
    written.stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    written.stderr += chunk;
  });
  child.stdin?.end(input);
  const ended = new Promise<BinaryOutcome>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...written, bytes: Buffer.concat(chunks) }));
  });
  return {
    ended,
    written,
    shows: (text) => vi.waitFor(() => shown(written, text), { timeout: 10_000, interval: 20 }),
    interrupt: () => child.kill('SIGINT'),
    kill: (signal = 'SIGKILL') => void child.kill(signal),
  };
}

/** Runs the built bin to its end. */
export async function runSpawned(words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { code, stdout, stderr } = await spawnCli(words, options).ended;
  return { code, stdout, stderr };
}
