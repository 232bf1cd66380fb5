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

/** What a command wrote to stdout, byte by byte. */
export interface BinaryOutcome extends Outcome {
  readonly bytes: Buffer;
}

/** A command under way. */
export interface Running {
  readonly ended: Promise<BinaryOutcome>;
  /** Resolves when stdout or stderr holds this text. */
  shows(text: string | RegExp): Promise<void>;
  interrupt(): void;
  /** Ends it as the machine does: at once, without a word. */
  kill(): void;
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
    shows: (text) =>
      vi.waitFor(
        () => {
          const all = written.stdout + written.stderr;
          if (typeof text === 'string' ? !all.includes(text) : !text.test(all)) throw new Error(`not yet: ${all}`);
        },
        { timeout: 10_000, interval: 20 },
      ),
    interrupt: () => child.kill('SIGINT'),
    kill: () => child.kill('SIGKILL'),
  };
}

/** Runs the built bin to its end. */
export async function runCli(words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { code, stdout, stderr } = await startCli(words, options).ended;
  return { code, stdout, stderr };
}

/** Runs the built bin to its end, for a command that writes bytes to stdout. */
export function runBinary(words: readonly string[], options: RunOptions = {}): Promise<BinaryOutcome> {
  return startCli(words, options).ended;
}
