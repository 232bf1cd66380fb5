// What the limiter does when its object fails, hangs, has too much to do, or makes a call wait.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

interface Seen {
  readonly calls: (number | string)[];
  readonly errors: string[];
  readonly waits: object[];
  readonly asked: string[];
}

describe.skipIf(whyNoWorkerd !== undefined)('a limiter whose object', () => {
  let worker: Worker;
  beforeAll(async () => {
    worker = await startWorkerd({ modules: true, script: await bundle({ file: 'unavailable-worker.ts' }) });
  });
  afterAll(() => worker.dispose());
  const see = async (query: string) =>
    (await (await worker.dispatchFetch(`http://worker.test${query}`)).json()) as Seen;

  test('fails is asked five times, and then each isolate keeps the limit for itself; onError is told once', async () => {
    const { calls, errors, asked } = await see('/?object=fails&calls=4');
    expect(asked.filter((name) => name === 'turn')).toHaveLength(4 * 5);
    const [first = 0, , third = 0] = calls.map(Number).sort((a, b) => a - b);
    expect(third - first).toBeGreaterThan(399);
    expect(errors).toEqual(['moved']);
  });

  test('fails rejects with a ConnectionError under onUnavailable "throw", with what is wrong as the cause', async () => {
    expect((await see('/?object=fails&then=throw')).calls).toEqual(['ConnectionError: moved']);
  });

  test('hangs is given timeoutMs', async () => {
    const { calls, errors } = await see('/?object=hangs');
    expect(calls).toEqual([expect.any(Number)]);
    expect(Number(calls[0])).toBeLessThan(3_000);
    expect(errors).toEqual(['The Durable Object "main" did not answer within 50 ms.']);
  });

  test('has too much to do is not asked again for it', async () => {
    const { asked } = await see('/?object=overloaded');
    expect(asked.filter((name) => name === 'turn')).toHaveLength(1);
  });

  test('says when to ask again: the call sleeps, tells its wait once, and settles its slot once', async () => {
    const { calls, waits, asked, errors } = await see('/?object=waits');
    expect(Number(calls[0])).toBeGreaterThan(399);
    expect(waits).toEqual([{ lane: 'videos.create', waitMs: 700, queued: 3, reason: 'pause' }]);
    expect(asked).toEqual(['turn', 'turn', 'turn', 'used']);
    expect(errors).toEqual([]);
  });

  test('is told of a call that was aborted while it waited', async () => {
    const { calls, asked } = await see('/abort?object=waits');
    expect(calls).toEqual(['TimeoutError: undefined']);
    expect(asked).toEqual(['turn', 'unused']);
  });
});
