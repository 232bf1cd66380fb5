// A status line that is updated in place, if stderr is a terminal.
import type { Writable } from 'node:stream';
import { createLogUpdate } from 'log-update';
import { systemClock } from '../runtime/clock.js';

/** Interval at which the line's times are updated. */
const TICK_MS = 1_000;
const DEFAULT_COLUMNS = 80;

export interface LiveHost {
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface LiveLine {
  /** Shows a line, which is updated every second. */
  show(line: () => string): void;
  /** Writes other text above the line. */
  printAbove(write: () => void): void;
  /** Removes the line. */
  end(): void;
}

/** Returns a live line, or undefined if nothing should be animated: without a terminal, in CI, or with NO_COLOR. */
export function liveLineOf({ stderr, env }: LiveHost): LiveLine | undefined {
  if (!stderr.isTTY || env.CI || env.NO_COLOR || env.TERM === 'dumb') return undefined;
  const update = createLogUpdate(stderr, { showCursor: true });
  let line: (() => string) | undefined;
  let stop = () => {};
  const draw = () => {
    if (line) update(line().slice(0, (stderr.columns ?? DEFAULT_COLUMNS) - 1));
  };
  const tick = () => {
    draw();
    stop = systemClock.after(TICK_MS, tick, { isIdle: true });
  };
  return {
    show(next) {
      const isFirst = line === undefined;
      line = next;
      if (isFirst) tick();
      else draw();
    },
    printAbove(write) {
      update.clear();
      write();
      draw();
    },
    end() {
      stop();
      line = undefined;
      update.clear();
    },
  };
}
