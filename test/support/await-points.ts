// Enumerates the points at which a program waits: requests, store reads and writes, and timers. Each run is aborted at the
// next point, until a run has no more points.

/** The state at the abort: not executed, executed without a response, or responded. */
export const MODES = ['held', 'unanswered', 'answered'] as const;

export interface Point {
  /** Runs `work`, and aborts the program at the chosen point. */
  pass<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Fires a timer. */
  fire(fire: () => void): void;
  /** Releases held work. */
  release(): void;
  /** The point of the abort, or undefined if the program ended before. */
  readonly reached: string | undefined;
  /** Resolves at the abort. */
  readonly whenReached: Promise<void>;
}

/** Calls `abort` at the `index`-th point, from 1. */
export function pointAt(index: number, mode: (typeof MODES)[number], abort: () => void): Point {
  let passed = 0;
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
  const held = new Promise<void>((resolve) => {
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
      if (reached !== undefined && mode !== 'answered') await held;
      passed += 1;
      if (passed !== index) return work();
      reach(`${mode} ${what}`);
      if (mode === 'held') {
        abort();
        await held;
        return work();
      }
      const result = await work();
      abort();
      if (mode === 'unanswered') await held;
      return result;
    },
    fire(fire) {
      passed += 1;
      if (passed === index) {
        reach('timer');
        abort();
      }
      fire();
    },
  };
}
