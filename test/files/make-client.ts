import { type ClientOptions, readConfig } from '../../src/config.js';
import { Jobs } from '../../src/resources/jobs.js';
import { Uploads } from '../../src/resources/uploads.js';
import { createTransport } from '../../src/transport/http-transport.js';
import type { LoopbackService } from './loopback-service.js';

/** The two resources that files go through, over the real transport. */
export function makeClient(service: LoopbackService, options: Partial<ClientOptions> = {}) {
  const transport = createTransport(readConfig({ apiKey: 'key-for-tests', baseUrl: service.baseUrl, ...options }));
  return { uploads: new Uploads(transport), jobs: new Jobs(transport) };
}
