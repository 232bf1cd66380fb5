// Many isolates of one account in workerd. Their object fails one call in twenty.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signWebhook } from '../../src/webhooks/index.js';
import { type CountingService, startCountingService } from '../redis/counting-service.js';
import { completedEvent } from '../support/completed-event.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

/** The campaign uses the documented limit and a shorter minute. CI uses fewer isolates and windows. */
const [ISOLATES, VIDEOS_EACH, LIMIT, WINDOW_MS] =
  process.env.CAMPAIGN === 'full' ? [12, 25, 20, 4_000] : [4, 12, 16, 2_000];

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

  test('create their videos at the rate limit without a 429', { timeout: 240_000 }, async () => {
    const fromEach = <T>(request: (isolate: number) => Promise<T>) =>
      Promise.all(Array.from({ length: ISOLATES }, (_, isolate) => request(isolate)));
    await fromEach((isolate) => send(isolate, '/errors'));
    const startMs = performance.now();
    // The object restarts during the creates.
    setTimeout(() => void send(0, '/crash'), WINDOW_MS * 1.5);
    const created = await fromEach(async (isolate) => (await send(isolate, `/create?count=${VIDEOS_EACH}`)).json());
    expect(created).toEqual(Array(ISOLATES).fill(VIDEOS_EACH));
    const tookMs = performance.now() - startMs;
    expect(service.rejectedCount()).toBe(0);
    expect(service.countedAt).toHaveLength(ISOLATES * VIDEOS_EACH);
    expect(await fromEach(async (isolate) => (await send(isolate, '/errors')).json())).toEqual(
      Array(ISOLATES).fill([]),
    );
    // The calls of the first window are sent immediately, and those of each next window one window later.
    const throughput = (((ISOLATES * VIDEOS_EACH) / LIMIT - 1) * WINDOW_MS) / tookMs;
    console.info(`${(100 * throughput).toFixed(1)} % of the allowed throughput`);
    // A short run is too sensitive to the machine's load.
    if (process.env.CAMPAIGN === 'full') expect(throughput).toBeGreaterThanOrEqual(0.9);
  });

  test('handle each webhook once, even if several isolates receive it', async () => {
    const deliveries = Array.from({ length: 10 }, async (_, index) => {
      const event = completedEvent(`job_${index}`, 'https://gen.test', new Date().toISOString());
      const { body, headers } = await signWebhook(event, { secret: 'whsec_test' });
      const post = (isolate: number) => send(isolate % 4, '/webhook', { method: 'POST', body, headers });
      return (await Promise.all([post(index), post(index + 1), post(index + 2)])).map(({ status }) => status);
    });
    const statuses = (await Promise.all(deliveries)).flat();
    expect(statuses.filter((status) => ![200, 503].includes(status))).toEqual([]);
    const handled = await Promise.all([0, 1, 2, 3].map(async (isolate) => (await send(isolate, '/handled')).json()));
    expect(handled.flat()).toHaveLength(10);
    expect(new Set(handled.flat()).size).toBe(10);
  });
});
