import type { Clock } from '../../src/runtime/clock.js';

/** Time that a test moves. */
export class HeldClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<{ readonly atMs: number; readonly fire: () => void }>();

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, fire: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, fire };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves time, and fires each timer at its time. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await turn();
    for (;;) {
      const next = [...this.#timers].sort((one, two) => one.atMs - two.atMs)[0];
      if (!next || next.atMs > untilMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.fire();
      await turn();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Sets the time, forwards or backwards. Timers keep the time that is left to them. */
  jump(ms: number): void {
    this.#nowMs += ms;
    const timers = [...this.#timers];
    this.#timers.clear();
    for (const timer of timers) this.#timers.add(Object.assign(timer, { atMs: timer.atMs + ms }));
  }
}

/** Lets what is ready go on. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
