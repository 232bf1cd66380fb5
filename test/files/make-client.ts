import { type ClientOptions, GenClient } from '../../src/index.js';
import { rejection } from '../transport/support.js';
import type { LoopbackService } from './loopback-service.js';

/** Creates a client of the loopback service. */
export function makeClient(service: LoopbackService, options: Partial<ClientOptions> = {}): GenClient {
  return new GenClient({ apiKey: 'key-for-tests', baseUrl: service.baseUrl, ...options });
}

/** Returns a call's error. */
export const failure = async (work: Promise<unknown>) => (await rejection(work)) as Error & { readonly code?: string };
