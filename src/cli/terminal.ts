import type { Writable } from 'node:stream';
import { systemClock } from '../runtime/clock.js';
import { abortable } from '../runtime/deadline.js';
import { UsageError } from './errors.js';
import { type LiveHost, liveLineOf } from './live-line.js';

/** How far something has come. */
export interface Progress {
  readonly text: string;
  /** Without a live line, a line is written for each step. */
  readonly step: string | number;
  /** Estimated milliseconds until its end. */
  readonly etaMs?: number | undefined;
  /** From 0 to 1. */
  readonly share?: number | undefined;
}

export type ShowProgress = (progress: Progress) => void;

/** Bytes moved, of how many if that is known. The steps are quarters, so that a log stays short. */
export function bytesShown(done: number, total: number | undefined): Progress {
  if (!total) return { text: megabytes(done), step: 0 };
  const share = done / total;
  return { text: `${Math.floor(100 * share)}% of ${megabytes(total)}`, step: Math.floor(4 * share), share };
}

/** A time as `1:05`. */
function minutes(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

const BAR_WIDTH = 20;

function bar(share: number): string {
  const full = Math.round(BAR_WIDTH * Math.min(1, Math.max(0, share)));
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

/** A live line: its text, the time that has passed, and the time that is left, which both run on between updates. */
function liveText(label: string, { text, etaMs, share }: Progress, startMs: number, seenMs: number): string {
  const nowMs = systemClock.now();
  const leftMs = etaMs === undefined ? 0 : etaMs - (nowMs - seenMs);
  const left = leftMs > 0 ? `, about ${minutes(leftMs)} left` : '';
  const words = [
    label,
    share === undefined ? undefined : bar(share),
    text,
    `${minutes(nowMs - startMs)} elapsed${left}`,
  ];
  return plainText(words.filter((word) => word !== undefined).join('  '));
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;
}

// What the service or a file says may carry escape sequences that a terminal obeys. None gets through here.

/** Control and formatting characters: escape sequences, line breaks, text that runs backwards. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function plainText(value: unknown): string {
  return String(value).replace(UNSAFE, ' ').trimEnd();
}

/** JSON on one line in which no character can steer a terminal. */
function plainJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null';
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(UNSAFE, (char) => char.split('').map(escaped).join(''));
}

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
  /** Shows the steps of something; not for programs. `isLive` shows it only on a live line. */
  progress(label: string, options?: { readonly isLive?: boolean }): ShowProgress;
  /** Removes the live line. */
  end(): void;
}

export interface OutputStreams extends LiveHost {
  readonly stdout: Writable & { readonly isTTY?: boolean };
}

export function createTerminal(host: OutputStreams, { isJson }: { isJson: boolean }): Terminal {
  const { stdout, stderr } = host;
  const live = isJson ? undefined : liveLineOf(host);
  const write = (stream: Writable, text: string) => {
    if (live) live.above(() => stream.write(text));
    else stream.write(text);
  };
  const note = (text: string) => {
    if (!isJson) write(stderr, `${plainText(text)}\n`);
  };
  let lineStream: Writable = stdout;
  const print = (lines: readonly string[]) => {
    if (!isJson && lines.length > 0) write(lineStream, lines.map((line) => `${plainText(line)}\n`).join(''));
  };
  return {
    isJson,
    result(value, lines) {
      live?.end();
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
    progress(label, { isLive = false } = {}) {
      const startMs = systemClock.now();
      let last: string | number | undefined;
      return (progress) => {
        const { text, step, etaMs } = progress;
        const seenMs = systemClock.now();
        if (live) live.show(() => liveText(label, progress, startMs, seenMs));
        else if (step !== last && !isLive) note(`${label}: ${text}${etaMs ? `, about ${minutes(etaMs)} left` : ''}`);
        last = step;
      };
    },
    end: () => live?.end(),
  };
}

async function pour(body: ReadableStream<Uint8Array>, stdout: Writable, signal: AbortSignal): Promise<void> {
  for await (const bytes of body) {
    // Called back when the bytes are written, or can no longer be because the reader has gone.
    const failure = await abortable(new Promise((resolve) => stdout.write(bytes, resolve)), signal);
    if (failure) return;
  }
}

/** A signal that aborts on Ctrl-C, a request to terminate or a hang-up; a second one ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  // A terminal that is closed, or an ssh session that is dropped, hangs up; Windows has Ctrl-Break.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const) {
    process.once(name, () => controller.abort(new Error('Interrupted.')));
  }
  return controller.signal;
}

/** Resolves when the signal aborts: for commands that end in no other way. */
export async function untilInterrupted(signal: AbortSignal): Promise<void> {
  await abortable(new Promise<never>(() => {}), signal).catch(() => {});
}
