import { type ClientOptions, GenClient } from '../../src/index.js';
import type { LoopbackService } from './loopback-service.js';

/** A client of the loopback service. */
export function makeClient(service: LoopbackService, options: Partial<ClientOptions> = {}): GenClient {
  return new GenClient({ apiKey: 'key-for-tests', baseUrl: service.baseUrl, ...options });
}
