import { afterAll, beforeAll } from 'vitest';
import { type ClientOptions, GenClient } from '../../src/index.js';
import { systemClock } from '../../src/runtime/clock.js';
import { rejection } from '../transport/support.js';
import type { LoopbackService } from './loopback-service.js';

/** Creates a client of the loopback service. */
export function makeClient(service: LoopbackService, options: Partial<ClientOptions> = {}): GenClient {
  return new GenClient({ apiKey: 'key-for-tests', baseUrl: service.baseUrl, ...options });
}

/** Returns a call's error. */
export const failure = async (work: Promise<unknown>) => (await rejection(work)) as Error & { readonly code?: string };

/** Ends the pauses of this file's clients immediately. Deadlines don't change. */
export function quickPauses(): void {
  const { after } = systemClock;
  beforeAll(() => {
    systemClock.after = (ms, fire, options) => after(ms < 10_000 ? 0 : ms, fire, options);
  });
  afterAll(() => {
    systemClock.after = after;
  });
}
