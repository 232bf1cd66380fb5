import type { Writable } from 'node:stream';
import { systemClock } from '../runtime/clock.js';
import { abortable } from '../runtime/deadline.js';
import { UsageError } from './errors.js';
import { type LiveHost, liveLineOf } from './live-line.js';

/** Progress of a command. */
export interface Progress {
  readonly text: string;
  /** Without a live line, a line is written whenever the step changes. */
  readonly step: string | number;
  /** Estimated milliseconds until the end. */
  readonly etaMs?: number | undefined;
  /** From 0 to 1. */
  readonly fraction?: number | undefined;
}

export type ShowProgress = (progress: Progress) => void;

/** Returns a transfer's progress. Its step changes at each quarter, so that a log stays short. */
export function bytesProgress(bytes: number, total: number | undefined): Progress {
  if (!total) return { text: megabytes(bytes), step: 0 };
  const fraction = bytes / total;
  return { text: `${Math.floor(100 * fraction)}% of ${megabytes(total)}`, step: Math.floor(4 * fraction), fraction };
}

/** Formats a time as `1:05`. */
function formatMinutes(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

const BAR_WIDTH = 20;

function bar(fraction: number): string {
  const full = Math.round(BAR_WIDTH * Math.min(1, Math.max(0, fraction)));
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

/** Returns a live line's text. Its times advance between updates. */
function liveText(label: string, { text, etaMs, fraction }: Progress, startMs: number, updatedMs: number): string {
  const nowMs = systemClock.now();
  const leftMs = etaMs === undefined ? 0 : etaMs - (nowMs - updatedMs);
  const remaining = leftMs > 0 ? `, about ${formatMinutes(leftMs)} left` : '';
  const parts = [
    label,
    fraction === undefined ? undefined : bar(fraction),
    text,
    `${formatMinutes(nowMs - startMs)} elapsed${remaining}`,
  ];
  return plainText(parts.filter((word) => word !== undefined).join('  '));
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;
}

/** Control and formatting characters: escape sequences, line breaks, right-to-left overrides. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function plainText(value: unknown): string {
  return String(value).replace(UNSAFE, ' ').trimEnd();
}

/** Serializes as one line, without control characters of a terminal. */
function plainJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null';
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(UNSAFE, (char) => char.split('').map(escapeUnit).join(''));
}

/** A command's output: results on stdout, everything else on stderr. */
export interface Terminal {
  /** If true, writes only JSON to stdout, and nothing to stderr. */
  readonly isJson: boolean;
  /** If true, progress is a line that is rewritten in place. */
  readonly isLive: boolean;
  /** Writes the outcome, as JSON or as lines. */
  result(value: unknown, lines: readonly string[]): void;
  /** Writes result lines early. Does nothing with `--json`. */
  print(lines: readonly string[]): void;
  /** Reserves stdout for a file. From then on, lines are written to stderr. */
  reserveStdout(): void;
  /** Writes a file to stdout. Ends early if the reader exits. */
  stream(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** Writes a line to stderr. Does nothing with `--json`. */
  note(text: string): void;
  /** Shows progress, unless `--json` is set. With `isLive`, shows it only on a live line. */
  progress(label: string, options?: { readonly isLive?: boolean }): ShowProgress;
  /** Removes the live line. */
  end(): void;
}

export interface OutputStreams extends LiveHost {
  readonly stdout: Writable & { readonly isTTY?: boolean };
}

export function createTerminal(host: OutputStreams, { isJson }: { isJson: boolean }): Terminal {
  const { stdout, stderr } = host;
  const liveLine = isJson ? undefined : liveLineOf(host);
  const write = (stream: Writable, text: string) => {
    if (liveLine) liveLine.printAbove(() => stream.write(text));
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
    isLive: liveLine !== undefined,
    result(value, lines) {
      liveLine?.end();
      if (isJson) stdout.write(`${plainJson(value)}\n`);
      else print(lines);
    },
    print,
    reserveStdout() {
      if (stdout.isTTY === true) {
        throw new UsageError('--out -: stdout is a terminal. Redirect it to a file or a program.');
      }
      lineStream = stderr;
    },
    stream: (body, signal) => pipe(body, stdout, signal),
    note,
    progress(label, { isLive = false } = {}) {
      const startMs = systemClock.now();
      let lastStep: string | number | undefined;
      return (progress) => {
        const { text, step, etaMs } = progress;
        const updatedMs = systemClock.now();
        if (liveLine) liveLine.show(() => liveText(label, progress, startMs, updatedMs));
        else if (step !== lastStep && !isLive)
          note(`${label}: ${text}${etaMs ? `, about ${formatMinutes(etaMs)} left` : ''}`);
        lastStep = step;
      };
    },
    end: () => liveLine?.end(),
  };
}

async function pipe(body: ReadableStream<Uint8Array>, stdout: Writable, signal: AbortSignal): Promise<void> {
  for await (const bytes of body) {
    // Resolves when the bytes are written, or if the reader has exited.
    const failure = await abortable(new Promise((resolve) => stdout.write(bytes, resolve)), signal);
    if (failure) return;
  }
}

/** Returns a signal that aborts on Ctrl-C, SIGTERM, or SIGHUP. The second time, the process exits. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  // A closed terminal or a dropped SSH session sends SIGHUP. Windows has Ctrl-Break.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const) {
    process.once(name, () => controller.abort(new Error('Interrupted.')));
  }
  return controller.signal;
}

/** Resolves when the signal aborts. */
export async function untilInterrupted(signal: AbortSignal): Promise<void> {
  await abortable(new Promise<never>(() => {}), signal).catch(() => {});
}
