import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../support/build.js';
import { type BinaryOutcome, collectOutput, type Running, type RunOptions } from './run-cli.js';

export interface Spawned extends Running {
  /** Kills the process, with SIGKILL by default. */
  kill(signal?: NodeJS.Signals): void;
}

export const BIN = join(ROOT, 'dist/cli.js');

/** Starts the built CLI with only PATH of this process's environment. */
export function spawnCli(args: readonly string[], { env = {}, cwd, input }: RunOptions = {}): Spawned {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { written, shows, outcome } = collectOutput(child.stdout, child.stderr);
  child.stdin.end(input);
  const ended = new Promise<BinaryOutcome>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve(outcome(code)));
  });
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => void child.kill(signal);
  return { ended, written, shows, interrupt: () => kill('SIGINT'), kill };
}
