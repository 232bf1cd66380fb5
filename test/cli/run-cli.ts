import { PassThrough, Readable } from 'node:stream';
import { vi } from 'vitest';
import { main } from '../../src/cli/main.js';
import type { CliHost } from '../../src/cli/session.js';

/** A command's exit code and output. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command's outcome, with stdout as bytes, too. */
export interface BinaryOutcome extends Outcome {
  readonly bytes: Buffer;
}

/** A running command. */
export interface Running {
  readonly ended: Promise<BinaryOutcome>;
  /** Resolves when stdout or stderr contains this text. */
  shows(text: string | RegExp): Promise<void>;
  interrupt(): void;
  readonly written: { stdout: string; stderr: string };
}

/** Options for running a command. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Changes the process's working directory, so that a test's commands share a folder. */
  readonly cwd?: string;
  readonly input?: string;
  readonly createClient?: CliHost['createClient'];
  /** If true, stderr is a terminal with 100 columns. */
  readonly isTerminal?: boolean;
}

/** Collects the output of two streams. */
export function collectOutput(stdout: Readable | null, stderr: Readable | null) {
  const written = { stdout: '', stderr: '' };
  const chunks: Buffer[] = [];
  stdout?.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    written.stdout += chunk;
  });
  stderr?.on('data', (chunk: Buffer) => {
    written.stderr += chunk;
  });
  const shows = (text: string | RegExp) =>
    vi.waitFor(
      () => {
        const all = written.stdout + written.stderr;
        if (typeof text === 'string' ? !all.includes(text) : !text.test(all)) throw new Error(`not yet: ${all}`);
      },
      { timeout: 10_000, interval: 5 },
    );
  const outcome = (code: number | null): BinaryOutcome => ({ code, ...written, bytes: Buffer.concat(chunks) });
  return { written, shows, outcome };
}

/** Starts a command in this process, without this process's environment. */
export function startCli(
  args: readonly string[],
  { env = {}, cwd, input = '', createClient, isTerminal = false }: RunOptions = {},
): Running {
  if (cwd !== undefined) process.chdir(cwd);
  const controller = new AbortController();
  const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY: isTerminal, columns: 100 })];
  const { written, shows, outcome } = collectOutput(stdout, stderr);
  const stdin = Readable.from([Buffer.from(input)]);
  const { signal } = controller;
  const ended = main(args, { stdin, stdout, stderr, env, signal, ...(createClient && { createClient }) }).then(
    async (code) => {
      // The last output may still be buffered in the streams.
      await new Promise((resolve) => setImmediate(resolve));
      return outcome(code);
    },
  );
  return { ended, written, shows, interrupt: () => controller.abort(new Error('Ctrl-C')) };
}

/** Runs a command to its end. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { code, stdout, stderr } = await startCli(args, options).ended;
  return { code, stdout, stderr };
}
