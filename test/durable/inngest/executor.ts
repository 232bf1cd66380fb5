// A stand-in for Inngest's server. It calls a function's handler with the results of earlier steps until the function ends,
// performs sleeps and event waits, and retries after a crash.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pause } from '../slow-service.js';

interface Op {
  readonly id: string;
  readonly op: string;
  readonly name: string;
  readonly data?: unknown;
  readonly error?: unknown;
  readonly opts?: { readonly timeout?: string; readonly if?: string };
}

interface SentEvent {
  readonly name: string;
  readonly data: unknown;
}

/** A function's outcome. */
export interface Outcome {
  readonly status: number;
  readonly body: unknown;
  /** The IDs of its steps, in order. */
  readonly steps: readonly string[];
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function milliseconds(text: string): number {
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0),
    0,
  );
}

/** Starts the event server, and returns the executor of functions. */
export async function startExecutor() {
  const listeners = new Set<(event: SentEvent) => void>();
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    if (request.method === 'POST' && request.url?.startsWith('/e/')) {
      for (const event of JSON.parse(text) as SentEvent[]) for (const listener of listeners) listener(event);
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ids: ['1'], status: 200 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  function waitForEvent({ name, opts }: Op): Promise<SentEvent | null> {
    return new Promise((resolve) => {
      const settle = (event: SentEvent | null) => {
        clearTimeout(timer);
        listeners.delete(listener);
        resolve(event);
      };
      const listener = (event: SentEvent) => {
        if (event.name === name && matches(opts?.if ?? '', event)) settle(event);
      };
      const timer = setTimeout(() => settle(null), milliseconds(opts?.timeout ?? ''));
      listeners.add(listener);
    });
  }

  async function perform(op: Op): Promise<unknown> {
    if (op.op === 'StepRun') return op.data;
    if (op.op === 'Sleep') return pause(milliseconds(op.name)).then(() => null);
    if (op.op === 'WaitForEvent') return waitForEvent(op);
    throw new Error(`unknown op: ${JSON.stringify(op)}`);
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => server.close(),
    /** Runs a handler's function until it ends. */
    async run(handler: string, data: object): Promise<Outcome> {
      const event = { id: crypto.randomUUID(), name: 'videos/requested', data, ts: Date.now() };
      const steps: Record<string, unknown> = {};
      const run_id = crypto.randomUUID();
      for (let attempt = 0; ; ) {
        const stack = { stack: [], current: 0 };
        const ctx = { run_id, attempt, disable_immediate_execution: false, use_api: false, stack };
        const body = JSON.stringify({ version: 2, ctx, event, events: [event], steps, use_api: false });
        const headers = { 'content-type': 'application/json', 'x-inngest-server-kind': 'dev' };
        const url = `${handler}?fnId=videos-video&stepId=step`;
        const response = await fetch(url, { method: 'POST', headers, body }).catch(() => undefined);
        if (response === undefined) {
          // The process crashed. Retry the step.
          await pause(500);
          continue;
        }
        const result: unknown = await response.json();
        if (response.status === 206) {
          for (const op of result as Op[]) steps[op.id] = { type: 'data', data: await perform(op) };
          attempt = 0;
          continue;
        }
        const isFinal = response.ok || response.headers.get('x-inngest-no-retry') === 'true';
        if (isFinal || ++attempt > 3) return { status: response.status, body: result, steps: Object.keys(steps) };
      }
    },
  };
}

/** Evaluates the only condition that the adapter uses. */
function matches(condition: string, { data }: SentEvent): boolean {
  const id = /^async\.data\.data\.job\.id == ("[^"]*")$/.exec(condition)?.[1];
  const event = data as { data?: { job?: { id?: string } } };
  return id !== undefined && event.data?.job?.id === JSON.parse(id);
}
