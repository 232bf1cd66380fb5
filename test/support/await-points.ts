// Enumerates the points at which a program waits: requests, store reads and writes, and timers. Each run is aborted at the
// next point, until a run has no more points.

/** The state of the work at the abort. */
export const MODES = ['not started', 'no response', 'responded'] as const;

export interface Point {
  /** Runs `work`, and aborts the program at the chosen point. */
  pass<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Fires a timer, which counts as a point. */
  fire(fire: () => void): void;
  /** Lets the stopped work continue. */
  release(): void;
  /** The point at which the program was aborted, or undefined if the program ended first. */
  readonly reached: string | undefined;
  /** Resolves at the abort. */
  readonly whenReached: Promise<void>;
}

/** Returns a point that calls `abort` when it is reached. Points are numbered from 1. */
export function pointAt(index: number, mode: (typeof MODES)[number], abort: () => void): Point {
  let count = 0;
  let reached: string | undefined;
  let atPoint = () => {};
  const whenReached = new Promise<void>((resolve) => {
    atPoint = resolve;
  });
  const reach = (what: string) => {
    reached = `${what} (point ${index})`;
    atPoint();
  };
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    get reached() {
      return reached;
    },
    whenReached,
    release: () => release(),
    async pass(what, work) {
      // The store and the network hang after the abort.
      if (reached !== undefined && mode !== 'responded') await released;
      count += 1;
      if (count !== index) return work();
      reach(`${mode} ${what}`);
      if (mode === 'not started') {
        abort();
        await released;
        return work();
      }
      const result = await work();
      abort();
      if (mode === 'no response') await released;
      return result;
    },
    fire(fire) {
      count += 1;
      if (count === index) {
        reach('timer');
        abort();
      }
      fire();
    },
  };
}
