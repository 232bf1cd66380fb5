import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundleProgram, receiveMessage } from '../support/program.js';

/** Generous for a busy machine. */
const EXIT_MS = 15_000;

let program: Awaited<ReturnType<typeof bundleProgram>>;
beforeAll(async () => {
  program = await bundleProgram(new URL('./finished-process.ts', import.meta.url));
}, 60_000);
afterAll(() => program.remove());

it.each([
  ['without a store', 'none'],
  ['with an open store', 'open'],
  ['with a closed store', 'closed'],
  ['with a hanging store', 'hangs'],
])(
  'a finished program exits %s (real process)',
  async (_, storeAtEnd) => {
    const child = program.start([storeAtEnd]);
    const exit = once(child, 'exit');
    try {
      expect(await receiveMessage(child)).toBe('JobFailedError');
      const startMs = performance.now();
      // A hanging store delays the message by up to its timeoutMs.
      const { timers } = await receiveMessage<{ timers: number }>(child, (message) => typeof message === 'object');
      if (storeAtEnd !== 'hangs') expect(timers).toBe(0);
      expect(await exit).toEqual([0, null]);
      expect(performance.now() - startMs).toBeLessThan(EXIT_MS);
    } finally {
      child.kill('SIGKILL');
    }
  },
  60_000,
);
