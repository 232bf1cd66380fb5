import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import type { JobProgress } from '../rules/read-order.js';
import { abortable } from '../runtime/deadline.js';
import { UsageError } from './errors.js';

/** How far something has come. */
export interface ShownProgress {
  /** Bytes moved, of how many where that is known. */
  bytes(done: number, total: number | undefined): void;
  /** Things done, of how many, and what else is worth knowing. */
  count(done: number, total: number, text: string): void;
  /** Lets something else write to the terminal, and shows the bar again below it. */
  aside(write: () => void): void;
  /** A state: shown with the time that has passed, and with how far the job is where that can be estimated. */
  state(text: string, progress?: JobProgress): void;
  /** Takes the bar away; nothing moves afterwards. */
  stop(): void;
}

interface BarPlace {
  readonly stream: Writable & { readonly isTTY?: boolean };
  readonly isShown: boolean;
  readonly note: (text: string) => void;
}

const NOTHING: ShownProgress = { bytes() {}, count() {}, aside: (write) => write(), state() {}, stop() {} };

/** A bar where a person watches, a line per step where a pipe does. */
function createProgress(label: string, place: BarPlace): ShownProgress {
  if (!place.isShown) return NOTHING;
  return place.stream.isTTY === true ? bar(label, place.stream) : lines(label, place);
}

function lines(label: string, { note }: BarPlace): ShownProgress {
  let last = '';
  let lastTenth = 0;
  const say = (text: string) => {
    if (text !== last) note(`${label}: ${text}`);
    last = text;
  };
  return {
    // Quarters, so that a log stays short.
    bytes: (done, total) => say(total ? `${25 * Math.floor((4 * done) / total)}%` : 'under way'),
    // Tenths, for the same reason.
    count(done, total, text) {
      const tenth = Math.floor((10 * done) / total);
      if (tenth !== lastTenth) note(`${label}: ${done}/${total}${text}`);
      lastTenth = tenth;
    },
    aside: (write) => write(),
    state: (text) => say(plainText(text)),
    stop() {},
  };
}

function bar(label: string, stream: BarPlace['stream']): ShownProgress {
  const single = new SingleBar({
    stream,
    format: '{label}  {bar}  {text}  {duration_formatted}',
    barCompleteChar: '=',
    barIncompleteChar: '.',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
    gracefulExit: false,
  });
  single.start(1, 0, { label, text: 'starting' });
  const show = (share: number, text: string) => single.update(share, { text });
  return {
    bytes(done, total) {
      const share = total ? done / total : 0;
      show(share, total ? `${Math.floor(share * 100)}% of ${megabytes(total)}` : megabytes(done));
    },
    count: (done, total, more) => show(done / total, `${done}/${total}${more}`),
    aside(write) {
      stream.write('\r\u001b[K');
      write();
      single.render();
    },
    state(text, { share = 0, etaMs } = NOT_KNOWN) {
      const left = etaMs === undefined ? '' : `, about ${minutes(etaMs)} left`;
      show(share, `${plainText(text)}${left}`);
    },
    stop: () => single.stop(),
  };
}

const NOT_KNOWN: JobProgress = { etaMs: undefined, share: undefined };

function minutes(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** A size in megabytes as a person reads it. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;
}

// What the service or a file says may carry escape sequences that a terminal obeys. None gets through here.

/** Control and formatting characters: escape sequences, line breaks, text that runs backwards. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text as one line that a terminal only shows. */
function plainText(value: unknown): string {
  return String(value).replace(UNSAFE, ' ').trimEnd();
}

/** JSON on one line in which no character can steer a terminal. */
function plainJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null';
  return json.replace(UNSAFE, (char) =>
    [...char].flatMap((one) => Array.from({ length: one.length }, (_, at) => escapeUnit(one.charCodeAt(at)))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
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

/** A signal that aborts on Ctrl-C, a request to terminate or a hang-up; a second one ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  // A terminal that is closed, or an ssh session that is dropped, hangs up; Windows has Ctrl-Break.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const) {
    process.once(name, () => controller.abort(new Interrupted()));
  }
  return controller.signal;
}

/** Resolves when the signal aborts: for commands that end in no other way. */
export function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
