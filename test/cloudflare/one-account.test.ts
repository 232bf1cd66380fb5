// Many isolates of one account in workerd, with an object that fails once in twenty calls.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signWebhook } from '../../src/webhooks/index.js';
import { type CountingService, startCountingService } from '../redis/counting-service.js';
import { completedEvent } from '../support/completed-event.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

/** The full run uses the documented limit and a scaled minute, otherwise fewer windows and isolates. */
const [ISOLATES, EACH, LIMIT, WINDOW_MS] = process.env.CAMPAIGN === 'full' ? [12, 25, 20, 4_000] : [4, 12, 16, 2_000];

describe.skipIf(whyNoWorkerd !== undefined)('isolates of one account', () => {
  let service: CountingService;
  let worker: Worker;
  const startIsolates = async () => {
    const script = await bundle({ file: 'account-worker.ts' });
    const bindings = { BASE_URL: service.baseUrl, LIMIT, WINDOW_MS };
    const object = { className: 'FlakyAccount', scriptName: 'isolate-0', useSQLite: true };
    return startWorkerd({
      workers: Array.from({ length: ISOLATES }, (_, index) => ({
        name: `isolate-${index}`,
        modules: true,
        script,
        compatibilityDate: '2026-07-01',
        bindings,
        durableObjects: { ACCOUNT: object },
      })),
    });
  };
  beforeAll(async () => {
    service = await startCountingService(LIMIT, WINDOW_MS);
    worker = await startIsolates();
  });
  afterAll(async () => {
    await worker.dispose();
    service.close();
  });

  const send = async (isolate: number, path: string, init?: RequestInit) =>
    (await worker.getWorker(`isolate-${isolate}`)).fetch(`http://worker.test${path}`, init);

  test('create their videos at the full allowed rate without a 429', { timeout: 240_000 }, async () => {
    const all = <T>(request: (isolate: number) => Promise<T>) =>
      Promise.all(Array.from({ length: ISOLATES }, (_, isolate) => request(isolate)));
    await all((isolate) => send(isolate, '/errors'));
    const startMs = performance.now();
    // The object restarts meanwhile.
    setTimeout(() => void send(0, '/crash'), WINDOW_MS * 1.5);
    const created = await all(async (isolate) => (await send(isolate, `/create?count=${EACH}`)).json());
    expect(created).toEqual(Array(ISOLATES).fill(EACH));
    const tookMs = performance.now() - startMs;
    expect(service.rejected()).toBe(0);
    expect(service.countedAt).toHaveLength(ISOLATES * EACH);
    expect(await all(async (isolate) => (await send(isolate, '/errors')).json())).toEqual(Array(ISOLATES).fill([]));
    // The first window's calls are sent immediately, and each further window's one window later.
    const reached = (((ISOLATES * EACH) / LIMIT - 1) * WINDOW_MS) / tookMs;
    console.info(`${(100 * reached).toFixed(1)} % of the allowed throughput`);
    // On a busy machine, a short run measures the machine.
    if (process.env.CAMPAIGN === 'full') expect(reached).toBeGreaterThanOrEqual(0.9);
  });

  test('handle each webhook once, whichever isolates receive its duplicates', async () => {
    const deliveries = Array.from({ length: 10 }, async (_, index) => {
      const event = completedEvent(`job_${index}`, 'https://gen.test', new Date().toISOString());
      const { body, headers } = await signWebhook(event, { secret: 'whsec_test' });
      const copies = [0, 1, 2].map((copy) => send((index + copy) % 4, '/webhook', { method: 'POST', body, headers }));
      return (await Promise.all(copies)).map(({ status }) => status);
    });
    const statuses = (await Promise.all(deliveries)).flat();
    expect(statuses.filter((status) => ![200, 503].includes(status))).toEqual([]);
    const handled = await Promise.all([0, 1, 2, 3].map(async (isolate) => (await send(isolate, '/handled')).json()));
    expect(handled.flat()).toHaveLength(10);
    expect(new Set(handled.flat()).size).toBe(10);
  });
});
