import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import type { WebHandler } from '../../src/adapters/node/node-handler.js';

export interface TestServer {
  readonly url: string;
  /** Sends raw text. Returns everything received until the server closes the connection. */
  sendRaw(text: string): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Serves a node:http request listener. */
export async function listen(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    sendRaw(text) {
      return new Promise((resolve, reject) => {
        let response = '';
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        socket.on('data', (bytes) => {
          response += bytes;
        });
        socket.on('close', () => resolve(response)).on('error', reject);
      });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Serves a web handler with node:http. */
export function serveWeb(handler: WebHandler): Promise<TestServer> {
  return listen(toNodeHandler(handler));
}
