import type { Writable } from 'node:stream';
import { Format, SingleBar } from 'cli-progress';
import { systemClock } from '../clock.js';
import { plainText } from './plain-text.js';

/** How far something has come. */
export interface Progress {
  /** Bytes moved, of how many where that is known. */
  bytes(done: number, total: number | undefined): void;
  /** A state without a measure: shown with the time that has passed. */
  state(text: string): void;
  /** Takes the bar away; nothing moves afterwards. */
  stop(): void;
}

interface Place {
  readonly stream: Writable & { readonly isTTY?: boolean };
  readonly isShown: boolean;
  readonly note: (text: string) => void;
}

/** How often the time that has passed is shown afresh. */
const TICK_MS = 1000;
const NOTHING: Progress = { bytes() {}, state() {}, stop() {} };

/** A bar where a person watches, a line per step where a pipe does. */
export function createProgress(label: string, place: Place): Progress {
  if (!place.isShown) return NOTHING;
  return place.stream.isTTY === true ? bar(label, place) : lines(label, place);
}

function lines(label: string, { note }: Place): Progress {
  let last = '';
  const say = (text: string) => {
    if (text !== last) note(`${label}: ${text}`);
    last = text;
  };
  return {
    // Quarters, so that a log stays short.
    bytes: (done, total) => say(total ? `${25 * Math.floor((4 * done) / total)}%` : 'under way'),
    state: (text) => say(plainText(text)),
    stop() {},
  };
}

function bar(label: string, { stream }: Place): Progress {
  const started = systemClock.now();
  let text = 'starting';
  let cancelTick = () => {};
  const single = new SingleBar({
    stream,
    hideCursor: true,
    clearOnComplete: true,
    gracefulExit: false,
    barsize: 30,
    format: (options, { value, progress }) => {
      const filled = Format.BarFormat(progress, { ...options, barCompleteString: BLOCKS, barIncompleteString: DOTS });
      const size = `${filled} ${Math.floor(progress * 100)}% of ${megabytes(value / Math.max(progress, 1e-9))}`;
      return `${label}  ${text === '' ? size : `${text}  ${minutes(systemClock.now() - started)}`}`;
    },
  });
  single.start(1, 0);
  const tick = () => {
    single.render();
    cancelTick = systemClock.after(TICK_MS, tick);
  };
  cancelTick = systemClock.after(TICK_MS, tick);
  return {
    bytes(done, total) {
      text = '';
      if (total) single.setTotal(total);
      else text = megabytes(done);
      single.update(done);
    },
    state(next) {
      text = plainText(next);
      single.render();
    },
    stop() {
      cancelTick();
      single.stop();
    },
  };
}

const BLOCKS = '='.repeat(30);
const DOTS = '.'.repeat(30);

function minutes(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** A size in megabytes as a person reads it. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;
}
