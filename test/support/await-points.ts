// Enumerates the points at which a program waits for something outside of it: a request, a read or a write of its store, a
// timer. A run of the program is aborted at one of them, and the next run at the next one, until a run has no more.

/** What happens at the point: nothing yet, the effect without its response, or both. */
export const MODES = ['held', 'unanswered', 'answered'] as const;

export interface Point {
  /** Passes what the program asks for on to `work`. The program is aborted at the chosen one. */
  pass<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Passes a timer that fires. */
  fire(fire: () => void): void;
  /** Lets what is held continue. */
  release(): void;
  /** What the program was aborted at; undefined if it ended before. */
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
      // After the abort, the store and the network hang.
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
