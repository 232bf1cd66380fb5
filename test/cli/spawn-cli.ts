import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensureBuilt, ROOT } from '../support/build.js';
import { type BinaryOutcome, gathering, type Outcome, type Running, type RunOptions } from './run-cli.js';

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
  const child = spawn(process.execPath, [BIN, ...words], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { written, shows, outcome } = gathering(child.stdout, child.stderr);
  child.stdin.end(input);
  const ended = new Promise<BinaryOutcome>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve(outcome(code)));
  });
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => void child.kill(signal);
  return { ended, written, shows, interrupt: () => kill('SIGINT'), kill };
}

/** Runs the built bin to its end. */
export async function runSpawned(words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { code, stdout, stderr } = await spawnCli(words, options).ended;
  return { code, stdout, stderr };
}
