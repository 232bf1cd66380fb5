// A service that can delay its responses to polls.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface DelayedService {
  readonly baseUrl: string;
  /** Returns how many times a job was polled. */
  polls(id: string): number;
  /** Completes the job. */
  complete(id: string): void;
  /** Delays responses to polls of the job until `respond`. */
  delay(id: string): void;
  respond(id: string): void;
  /** The time of each create. */
  readonly createdAt: number[];
  close(): void;
}

/** Starts the service on a loopback port. */
export async function startDelayedService(): Promise<DelayedService> {
  const completed = new Set<string>();
  const delayed = new Map<string, (() => void)[]>();
  const polls = new Map<string, number>();
  const createdAt: number[] = [];
  const server = createServer(async (request, response) => {
    await text(request);
    const id = request.url?.split('/').at(-1) ?? '';
    if (request.method === 'POST') {
      createdAt.push(performance.now());
      return send(response, { job: { id: `job_${createdAt.length}`, status: 'processing' }, quoted_token_cost: 1 });
    }
    polls.set(id, (polls.get(id) ?? 0) + 1);
    const respond = () => {
      const completedFields = {
        status: 'completed',
        providerOutputUrl: 'https://files.test/1',
        providerOutputExpiresAt: null,
      };
      send(response, {
        job: { id, mediaType: 'video', ...(completed.has(id) ? completedFields : { status: 'processing' }) },
      });
    };
    const responders = delayed.get(id);
    if (responders) responders.push(respond);
    else respond();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    polls: (id) => polls.get(id) ?? 0,
    complete: (id) => void completed.add(id),
    delay: (id) => void delayed.set(id, []),
    respond(id) {
      const waiting = delayed.get(id) ?? [];
      delayed.delete(id);
      for (const respond of waiting) respond();
    },
    createdAt,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function send(response: ServerResponse, data: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ success: true, data }));
}
