import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type ClientOptions, GenClient } from '../../src/index.js';
import { systemClock } from '../../src/runtime/clock.js';
import { rejection } from '../transport/support.js';
import type { LoopbackService } from './loopback-service.js';

/** Creates a client of the loopback service. */
export function createClient(service: LoopbackService, options: Partial<ClientOptions> = {}): GenClient {
  return new GenClient({ apiKey: 'key-for-tests', baseUrl: service.baseUrl, ...options });
}

/** Opens a server before each test, and closes it afterward. */
export function openPerTest<T extends { open(): Promise<void>; close(): Promise<void> }>(server: T): T {
  beforeEach(() => server.open());
  afterEach(() => server.close());
  return server;
}

/** Creates a file's bytes. Files with another `step` have other bytes. */
export const createMovie = (sizeBytes: number, step = 13) =>
  new Uint8Array(sizeBytes).map((_, at) => (at * step) % 249);

/** The response to a download whose link has expired. */
export const EXPIRED = { status: 410, body: { error: { code: 'output_expired', message: 'Gone.' } } };

/** Returns a call's error. */
export const failure = async (work: Promise<unknown>) => (await rejection(work)) as Error & { readonly code?: string };

/** Ends the pauses of clients in the current test file immediately. Deadlines don't change. */
export function quickPauses(): void {
  const { after } = systemClock;
  beforeAll(() => {
    systemClock.after = (ms, fire, options) => after(ms < 10_000 ? 0 : ms, fire, options);
  });
  afterAll(() => {
    systemClock.after = after;
  });
}
