// A service whose polls and creates can be delayed, written according to the documentation.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface HeldService {
  readonly baseUrl: string;
  /** Returns how often a job was polled. */
  reads(id: string): number;
  /** Completes the job. */
  complete(id: string): void;
  /** Delays responses to polls of the job until `letGo`. */
  hold(id: string): void;
  letGo(id: string): void;
  /** The time of each create. */
  readonly createdAt: number[];
  close(): void;
}

/** Serves on a loopback port. */
export async function startHeldService(): Promise<HeldService> {
  const completed = new Set<string>();
  const held = new Map<string, (() => void)[]>();
  const reads = new Map<string, number>();
  const createdAt: number[] = [];
  const server = createServer(async (request, response) => {
    await text(request);
    const id = request.url?.split('/').at(-1) ?? '';
    if (request.method === 'POST') {
      createdAt.push(performance.now());
      return answer(response, { job: { id: `job_${createdAt.length}`, status: 'processing' }, quoted_token_cost: 1 });
    }
    reads.set(id, (reads.get(id) ?? 0) + 1);
    const reply = () => {
      const done = { status: 'completed', providerOutputUrl: 'https://files.test/1', providerOutputExpiresAt: null };
      answer(response, { job: { id, mediaType: 'video', ...(completed.has(id) ? done : { status: 'processing' }) } });
    };
    const waiting = held.get(id);
    if (waiting) waiting.push(reply);
    else reply();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reads: (id) => reads.get(id) ?? 0,
    complete: (id) => void completed.add(id),
    hold: (id) => void held.set(id, []),
    letGo(id) {
      const waiting = held.get(id) ?? [];
      held.delete(id);
      for (const reply of waiting) reply();
    },
    createdAt,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function answer(response: ServerResponse, data: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ success: true, data }));
}
