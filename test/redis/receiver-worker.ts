// One of several receivers behind one address. The first is killed while it handles an event.
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Redis } from 'ioredis';
import { redisStore } from '../../src/adapters/redis/index.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';

const [, , port = '', secret = '', leaseMs = '', crashes = ''] = process.argv;
const handler = createWebhookHandler({
  secret,
  leaseMs: Number(leaseMs),
  store: redisStore(new Redis(`redis://127.0.0.1:${port}`)),
  on: {
    '*': (event) => {
      process.send?.({ handling: event.id });
      // Never settles: the process is killed meanwhile.
      return crashes === 'true' ? new Promise(() => {}) : undefined;
    },
  },
});
const server = createServer(getRequestListener((request) => handler(request)));
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ listening: typeof address === 'object' && address ? address.port : 0 });
});
