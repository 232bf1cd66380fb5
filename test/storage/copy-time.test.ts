// How long a copy waits for its store, and what an abort leaves behind.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/runtime/clock.js';
import { countedSignal, rejection } from '../transport/support.js';
import { FILE, failing, type Put, start, until } from './copy-setup.js';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('the time of a store', () => {
  const hold = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  it('is longer by a second for each megabyte after the last byte, for a store that sends them only then', async () => {
    hold();
    let isWhole = false;
    const put: Put = async (body) => {
      await new Response(body).arrayBuffer();
      isWhole = true;
      return new Promise<never>(() => {});
    };
    const { copy } = start({ puts: [put] });
    const ended = vi.fn();
    void copy({ timeoutMs: 1_000, retries: 0 }).catch(ended);
    await until(() => isWhole === true);
    await vi.advanceTimersByTimeAsync(1_900);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('stands still while the service gives nothing, and goes on for a store that takes nothing', async () => {
    hold();
    let give = () => {};
    const { copy, output } = start({
      puts: [
        async (body) => {
          const reader = body.getReader();
          for (let read = 0; read < 2; read++) await reader.read();
          return new Promise<never>(() => {});
        },
      ],
    });
    let given = 0;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      given += 1;
      if (given > 1) await new Promise<void>((resolve) => (give = resolve));
      controller.enqueue(FILE.slice(0, given > 1 ? 5 : 600));
    };
    const headers = { 'content-length': '5000', 'content-type': 'video/mp4' };
    output.mockResolvedValue(new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers }));
    const ended = vi.fn();
    const told = vi.fn();
    void copy({ timeoutMs: 1_000, retries: 0, onProgress: told }).catch(ended);
    await until(() => given === 2);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(ended).not.toHaveBeenCalled();
    give();
    await until(() => told.mock.calls.length === 2);
    await vi.advanceTimersByTimeAsync(900);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('leaves no timer and no listener behind', async () => {
    const set = vi.fn();
    vi.spyOn(systemClock, 'after').mockImplementation(() => {
      set('set');
      return () => set('ended');
    });
    const { signal, listeners } = countedSignal();
    await start().copy({ signal });
    const calls = set.mock.calls.flat();
    expect(calls.filter((it) => it === 'set').length).toBeLessThanOrEqual(calls.filter((it) => it === 'ended').length);
    expect([calls.length > 0, listeners()]).toEqual([true, 0]);
  });
});

describe('an abort', () => {
  it('in a pause ends it at once', async () => {
    const { controller, signal, listeners } = countedSignal();
    const { copy, clock, put, asked } = start({ puts: [failing(new Error('away'))] });
    const failed = rejection(copy({ signal }));
    await until(() => put.mock.calls.length === 1);
    await clock.advance(1);
    controller.abort('enough');
    expect(await failed).toBe('enough');
    expect([asked(), clock.timers, listeners()]).toEqual([[1, 1], 0, 0]);
  });
});
