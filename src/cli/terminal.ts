import type { Writable } from 'node:stream';
import { abortable } from '../runtime/deadline.js';
import { UsageError } from './errors.js';
import { createProgress, plainJson, plainText, type ShownProgress } from './progress.js';

/** Where a command writes: results on stdout, everything else on stderr. */
export interface Terminal {
  /** Whether a program reads: one JSON document on stdout, and nothing on stderr. */
  readonly isJson: boolean;
  /** The outcome: as JSON, or as lines for a reader. */
  result(value: unknown, lines: readonly string[]): void;
  /** Lines of the outcome as they come, for a reader; programs get them with the result. */
  print(lines: readonly string[]): void;
  /** Keeps stdout for a file: lines for a reader go to stderr from here on. */
  takeStdout(): void;
  /** Writes a file to stdout, as fast as it is read. Ends early when the reader has gone. */
  stream(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** Something worth knowing on the way; not for programs. */
  note(text: string): void;
  /** A bar on a terminal, plain lines in a pipe, nothing for programs. */
  progress(label: string): ShownProgress;
}

/** What a command writes to. */
export interface OutputStreams {
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** A terminal over the process's streams. */
export function createTerminal({ stdout, stderr }: OutputStreams, { isJson }: { isJson: boolean }): Terminal {
  const note = (text: string) => {
    if (!isJson) stderr.write(`${plainText(text)}\n`);
  };
  let lineStream: Writable = stdout;
  const print = (lines: readonly string[]) => {
    if (!isJson) lineStream.write(lines.map((line) => `${plainText(line)}\n`).join(''));
  };
  return {
    isJson,
    result(value, lines) {
      if (isJson) stdout.write(`${plainJson(value)}\n`);
      else print(lines);
    },
    print,
    takeStdout() {
      if (stdout.isTTY === true) {
        throw new UsageError('--out -: stdout is a terminal. Redirect it to a file or a program.');
      }
      lineStream = stderr;
    },
    stream: (body, signal) => pour(body, stdout, signal),
    note,
    progress: (label) => createProgress(plainText(label), { stream: stderr, isShown: !isJson, note }),
  };
}

async function pour(body: ReadableStream<Uint8Array>, stdout: Writable, signal: AbortSignal): Promise<void> {
  const reader = body.getReader();
  let isGone = false;
  const leave = () => {
    isGone = true;
  };
  stdout.once('close', leave).once('error', leave);
  try {
    for (let piece = await reader.read(); !piece.done && !isGone; piece = await reader.read()) {
      // Called back when the bytes are written, or can no longer be.
      const { value } = piece;
      await abortable(new Promise<void>((resolve) => stdout.write(value, () => resolve())), signal);
    }
  } finally {
    reader.cancel().catch(() => undefined);
    stdout.off('close', leave).off('error', leave);
  }
}

/** Why a command was ended from outside. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
  constructor() {
    super('Interrupted.');
  }
}

/** A signal that aborts on Ctrl-C or a request to terminate; a second one ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort(new Interrupted()));
  return controller.signal;
}

/** Resolves when the signal aborts: for commands that end in no other way. */
export function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
