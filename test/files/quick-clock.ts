import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../src/runtime/clock.js';

/** Ends the pauses of this file's clients immediately. Deadlines don't change. */
export function quickPauses(): void {
  const { after } = systemClock;
  beforeAll(() => {
    systemClock.after = (ms, fire, options) => after(ms < 10_000 ? 0 : ms, fire, options);
  });
  afterAll(() => {
    systemClock.after = after;
  });
}
