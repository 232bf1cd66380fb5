// The service and a client in this page. Nothing reaches the network.
import { type GenClient, GenError, type Job, MODELS } from 'gen-client';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';
import { createWebhookHandler, type WebhookEvent } from 'gen-client/webhooks';

/** A line of the log. */
export interface Line {
  readonly atMs: number;
  readonly kind: 'request' | 'page' | 'retry' | 'webhook' | 'log' | 'error';
  readonly text: string;
}

/** A webhook whose signature was verified. */
export interface Delivery {
  readonly event: WebhookEvent;
  readonly signature: string;
}

/** Called with what happens on a stage. */
export interface StageListener {
  line(kind: Line['kind'], text: string): void;
  delivered(delivery: Delivery): void;
}

/** The sandbox and the client of the playground. */
export interface Stage {
  readonly sandbox: Sandbox;
  readonly client: GenClient;
}

/** Duration of a job in milliseconds. */
export const JOB_MS = { videos: 5_000, images: 2_500 } as const;

/** Returns the aliases of the models that support a call. */
export function modelsOf(call: 'videos' | 'images') {
  return Object.entries(MODELS)
    .filter(([, model]) => model.kind === (call === 'videos' ? 'video' : 'image'))
    .map(([alias]) => alias);
}

/** Opens the sandbox, and a client that receives its webhooks. */
export function openStage(listener: StageListener): Stage {
  const sandbox = createSandbox({
    speed: 1,
    jobDurationMs: { video: JOB_MS.videos, image: JOB_MS.images },
    // In an app, this is a request to its server.
    webhookFetch: (input, init) => receive(new Request(input, init)),
  });
  const client = sandbox.client({
    hooks: {
      onResponse: ({ method, path, status, durationMs }) =>
        listener.line('request', `${method} ${path} → ${status} in ${Math.round(durationMs)} ms`),
      onRetry: ({ method, path, delayMs }) =>
        listener.line('retry', `${method} ${path} is retried in ${Math.round(delayMs)} ms with the same key`),
      onWait: ({ limit, waitMs }) => listener.line('retry', `${limit ?? 'The call'} waits ${Math.round(waitMs)} ms`),
    },
  });
  const handle = createWebhookHandler({
    client,
    on: { '*': (event) => listener.line('webhook', `${event.type} received, signature verified`) },
  });
  async function receive(request: Request): Promise<Response> {
    const copy = request.clone();
    const response = await handle(request);
    if (response.ok) {
      const event = (await copy.json()) as WebhookEvent;
      listener.delivered({ event, signature: copy.headers.get('x-service-signature') ?? '' });
    }
    return response;
  }
  return { sandbox, client };
}

/** Returns a URL of the job's file that the page can show. */
export async function fileOf(
  client: GenClient,
  job: Job | string,
): Promise<{ url: string; type: string; sizeBytes: number }> {
  const response = await client.jobs.output(job);
  const blob = await response.blob();
  return { url: URL.createObjectURL(blob), type: blob.type, sizeBytes: blob.size };
}

/** Returns an error's message with its code and recovery. */
export function explain(error: unknown): string {
  if (GenError.isInstance(error)) {
    const { code, recovery } = error as { code?: unknown; recovery?: unknown };
    const more = [code, recovery && `recovery: ${recovery}`].filter(Boolean).join(', ');
    return `${error.name}: ${error.message}${more ? ` (${more})` : ''}`;
  }
  return String(error);
}
