import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { vi } from 'vitest';
import { ensureBuilt, ROOT } from '../support/build.js';

/** How a command ended, and what it wrote. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command under way. */
export interface Running {
  readonly ended: Promise<Outcome>;
  /** Resolves when stdout or stderr holds this text. */
  shows(text: string | RegExp): Promise<void>;
  interrupt(): void;
  readonly written: { stdout: string; stderr: string };
}

/** How to run a command. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
}

export const BIN = join(ROOT, 'dist/cli.js');

/** Builds the bin once for all test files. */
export const buildBin = ensureBuilt;

/** Starts the built bin. Nothing of this process's environment but PATH gets there. */
export function startCli(words: readonly string[], { env = {}, cwd, input }: RunOptions = {}): Running {
  const child: ChildProcess = spawn(process.execPath, [BIN, ...words], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk) => {
    written.stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    written.stderr += chunk;
  });
  child.stdin?.end(input);
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...written }));
  });
  return {
    ended,
    written,
    shows: (text) =>
      vi.waitFor(
        () => {
          const all = written.stdout + written.stderr;
          if (typeof text === 'string' ? !all.includes(text) : !text.test(all)) throw new Error(`not yet: ${all}`);
        },
        { timeout: 10_000, interval: 20 },
      ),
    interrupt: () => child.kill('SIGINT'),
  };
}

/** Runs the built bin to its end. */
export function runCli(words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return startCli(words, options).ended;
}
