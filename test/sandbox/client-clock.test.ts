// Programs that use the sandbox's clock, like sandbox.client().

import { describe, expect, test, vi } from 'vitest';
import type { Clock } from '../../src/runtime/clock.js';
import { sleep } from '../../src/runtime/deadline.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { type OpenSandbox, openSandbox } from '../../src/sandbox/sandbox.js';
import { PATIENCE_MS } from '../support/patience.js';

interface Program {
  readonly openedSandbox: OpenSandbox;
  readonly clock: Clock;
  post(path: string, body: object): Promise<Response>;
  get(path: string): Promise<Response>;
}

function start(options: SandboxOptions): Program {
  const openedSandbox = openSandbox(options);
  const { service, clock, clientFetch } = openedSandbox;
  const headers = { authorization: `Bearer ${service.apiKey}` };
  const post: Program['post'] = (path, body) =>
    clientFetch(service.baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const get: Program['get'] = (path) => clientFetch(service.baseUrl + path, { headers });
  return { openedSandbox, clock, post, get };
}

describe('on a manual clock', () => {
  test("clients' timers and jobs' events run in chronological order", async () => {
    const { openedSandbox, clock } = start({ clock: 'manual', jobDurationMs: 3000 });
    const { service } = openedSandbox;
    const startMs = service.now();
    const order: string[] = [];
    const record = (event: string) => order.push(`${event} at ${service.now() - startMs}: ${service.jobs[0]?.status}`);
    await start({ clock: 'manual' }).post('/v1/videos', { prompt: 'another sandbox' });
    await service.fetch(`${service.baseUrl}/v1/videos`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.apiKey}` },
      body: '{"prompt":"a fox"}',
    });
    clock.after(5000, () => record('late'));
    clock.after(2999, () => record('before'));
    clock.after(3000, () => record('together'));
    clock.after(1000, () => {
      record('first');
      clock.after(500, () => record('nested'));
      clock.after(0, () => record('immediate'));
    });
    const cancel = clock.after(2000, () => record('canceled'));
    clock.after(1999, cancel);
    await service.advance(4000);
    expect(order).toEqual([
      'first at 1000: processing',
      'immediate at 1000: processing',
      'nested at 1500: processing',
      'before at 2999: processing',
      'together at 3000: completed',
    ]);
    expect(service.now() - startMs).toBe(4000);
    await service.advance(1000);
    expect(order.at(-1)).toBe('late at 5000: completed');
  });

  test("a fault's delay uses the clock, and an earlier deadline wins", async () => {
    const { openedSandbox, clock, get } = start({ clock: 'manual' });
    openedSandbox.service.faults.add({ match: { path: '/v1/models' }, latencyMs: 5000 });
    const order: string[] = [];
    get('/v1/models').then(() => order.push('response'));
    clock.after(4999, () => order.push('deadline'));
    clock.after(5001, () => order.push('after'));
    await openedSandbox.service.advance(6000);
    expect(order).toEqual(['deadline', 'response', 'after']);
  });
});

describe('on the real clock', () => {
  test("time isn't skipped while a request is in flight", async () => {
    const { openedSandbox, clock, post } = start({});
    let isOver = false;
    clock.after(60_000, () => {
      isOver = true;
    });
    let pulls = 0;
    const body = new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 25));
        pulls += 1;
        if (pulls > 6) return controller.close();
        controller.enqueue(new Uint8Array(10));
      },
    });
    const upload = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 60, upload_type: 'VIDEO' };
    const { data } = await (await post('/v1/uploads', upload)).json();
    const init = { method: 'PUT', headers: data.headers, body, duplex: 'half' } as RequestInit;
    expect((await openedSandbox.clientFetch(data.direct_upload_url, init)).status).toBe(200);
    expect(isOver).toBe(false);
    await vi.waitFor(() => expect(isOver).toBe(true), PATIENCE_MS);
  });

  test('an unread response stops time for only a quarter of a second', async () => {
    const { clock, get } = start({});
    await get('/v1/models');
    const startMs = performance.now();
    await sleep(clock, 10_000);
    const stoppedMs = performance.now() - startMs;
    expect(stoppedMs).toBeGreaterThan(200);
    const secondStartMs = performance.now();
    await sleep(clock, 10_000);
    expect(performance.now() - secondStartMs).toBeLessThan(stoppedMs);
  });

  test('an explicit speed applies', async () => {
    const { clock, openedSandbox, get } = start({
      speed: 100,
      limits: { 'jobs.get': { limit: 1, windowMs: 600_000 } },
    });
    const startMs = performance.now();
    await sleep(clock, 10_000);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(99);
    await get('/v1/jobs/x');
    // A client on this clock waits in sandbox time. For any other client, a hundred of these seconds are one.
    const ownS = Number((await get('/v1/jobs/x')).headers.get('retry-after'));
    expect([ownS > 300, ownS <= 600]).toEqual([true, true]);
    const headers = { authorization: `Bearer ${openedSandbox.service.apiKey}` };
    const other = await openedSandbox.service.fetch(`${openedSandbox.service.baseUrl}/v1/jobs/x`, { headers });
    const otherS = Number(other.headers.get('retry-after'));
    expect([otherS > 3, otherS <= 6]).toEqual([true, true]);
  });

  test('a pending timer keeps the process alive', () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const { clock } = start({ speed: 1 });
    const cancel = clock.after(60_000, () => {});
    const [timer] = setTimer.mock.results.map(({ value }) => value as NodeJS.Timeout);
    expect(timer?.hasRef()).toBe(true);
    cancel();
    setTimer.mockRestore();
  });
});
