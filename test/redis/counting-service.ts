import { setTimeout as pause } from 'node:timers/promises';
import { httpServer } from '../transport/support.js';

/** A service that limits creates strictly in a sliding window. */
export interface CountingService {
  readonly baseUrl: string;
  /** The time at which each create was counted, in milliseconds. */
  readonly countedAt: number[];
  /** Returns the number of creates over the limit. */
  rejectedCount(): number;
  close(): Promise<void>;
}

/** Serves creates on loopback. Each takes up to 10 ms, so they may be counted in a different order than they were sent. */
export async function startCountingService(limit: number, windowMs: number): Promise<CountingService> {
  const countedAt: number[] = [];
  let rejected = 0;
  const { url, close } = await httpServer(async (_, response) => {
    await pause(Math.random() * 5);
    const now = performance.now();
    const inWindow = countedAt.filter((at) => now - at < windowMs).length;
    const isFull = inWindow >= limit;
    if (isFull) rejected++;
    else countedAt.push(now);
    await pause(Math.random() * 5);
    const body = isFull
      ? { success: false, error: { code: 'rate_limited' } }
      : { success: true, data: { job: { id: `job_${countedAt.length}`, status: 'processing' } } };
    response.writeHead(isFull ? 429 : 200, { 'content-type': 'application/json', 'retry-after': '1' });
    response.end(JSON.stringify(body));
  });
  return { baseUrl: url, countedAt, rejectedCount: () => rejected, close };
}
