import { describe, expect, test } from 'vitest';
import { signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { bundleProgram } from '../support/program.js';
import { startRedis, whyNoRedis } from './real-redis.js';

const SECRET = 'whsec_test';
const LEASE_MS = 4_000;
const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

/** Starts a receiver in a separate process. */
function startReceiver(worker: Awaited<ReturnType<typeof bundleProgram>>, redisPort: number, crashes: boolean) {
  const process = worker.start([redisPort, SECRET, LEASE_MS, crashes]);
  const handled: string[] = [];
  const listening = new Promise<number>((resolve) => {
    process.on('message', (message: { listening?: number; handling?: string }) => {
      if (message.handling) handled.push(message.handling);
      if (message.listening) resolve(message.listening);
    });
  });
  const send = async () => {
    const { body, headers } = await signWebhook(event, { secret: SECRET });
    return fetch(`http://127.0.0.1:${await listening}/`, { method: 'POST', body, headers }).then(
      ({ status }) => status,
      () => 'no response',
    );
  };
  return { process, handled, send };
}

describe.skipIf(whyNoRedis())('an event whose receiver is killed while it handles the event', () => {
  test('is rejected until the lease expires, and then handled once by another receiver', async () => {
    const worker = await bundleProgram(new URL('receiver-worker.ts', import.meta.url));
    const redis = await startRedis();
    const first = startReceiver(worker, redis.port, true);
    const other = startReceiver(worker, redis.port, false);
    try {
      const response = first.send();
      await expect.poll(() => first.handled).toEqual([event.id]);
      first.process.kill('SIGKILL');
      expect(await response).toBe('no response');

      expect(await other.send()).toBe(503);
      expect(other.handled).toEqual([]);
      await expect.poll(other.send, { interval: 100 }).toBe(200);
      expect(await Promise.all(Array.from({ length: 50 }, other.send))).toEqual(Array(50).fill(200));
      expect(other.handled).toEqual([event.id]);
    } finally {
      other.process.kill('SIGKILL');
      await redis.close();
      worker.remove();
    }
  });
});
