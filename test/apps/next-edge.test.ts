// In Next.js's Edge runtime, setImmediate and MessageChannel exist and throw. `npm run test:runtimes` runs the scenario there.
import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => vi.unstubAllGlobals());

it('nextTurn waits for a turn of the event loop if setImmediate and MessageChannel throw', async () => {
  const unsupported = () => {
    throw new Error('A Node.js API is used which is not supported in the Edge Runtime.');
  };
  vi.stubGlobal('setImmediate', unsupported);
  vi.stubGlobal('MessageChannel', unsupported);
  // The query loads another copy of the module, which captures the stubs.
  const specifier = '../../src/runtime/clock.js?next-edge';
  const { nextTurn } = (await import(specifier)) as typeof import('../../src/runtime/clock.js');
  await expect(nextTurn()).resolves.toBeUndefined();
});
