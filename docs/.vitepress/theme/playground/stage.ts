// The service and a client of it, both in this page. Nothing here reaches the network.
import { type GenClient, GenError, type Job, MODELS } from 'gen-client';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';
import { createWebhookHandler, type WebhookEvent } from 'gen-client/webhooks';

/** A line of the feed. */
export interface Line {
  readonly atMs: number;
  readonly kind: 'request' | 'page' | 'retry' | 'webhook' | 'log' | 'error';
  readonly text: string;
}

/** A webhook as it arrived, after its signature was verified. */
export interface Delivery {
  readonly event: WebhookEvent;
  readonly signature: string;
}

/** What a stage tells the page. */
export interface Listener {
  line(kind: Line['kind'], text: string): void;
  delivered(delivery: Delivery): void;
}

/** The sandbox and the client of the playground. */
export interface Stage {
  readonly sandbox: Sandbox;
  readonly client: GenClient;
}

/** Milliseconds that a job takes here. */
export const JOB_MS = { videos: 5_000, images: 2_500 } as const;

/** The models of a call, with what each offers. */
export function modelsOf(call: 'videos' | 'images') {
  return Object.entries(MODELS)
    .filter(([, model]) => model.kind === (call === 'videos' ? 'video' : 'image'))
    .map(([alias]) => alias);
}

/** Opens the sandbox, and a client that hears of its webhooks. */
export function openStage(tell: Listener): Stage {
  const sandbox = createSandbox({
    speed: 1,
    jobDurationMs: { video: JOB_MS.videos, image: JOB_MS.images },
    // What would be a request to the app's own server stays in the page.
    webhookFetch: (input, init) => receive(new Request(input, init)),
  });
  const client = sandbox.client({
    hooks: {
      onResponse: ({ method, path, status, durationMs }) =>
        tell.line('request', `${method} ${path} answered ${status} in ${Math.round(durationMs)} ms`),
      onRetry: ({ method, path, delayMs }) =>
        tell.line('retry', `${method} ${path} is sent again in ${Math.round(delayMs)} ms, under the same key`),
      onWait: ({ limit, waitMs }) =>
        tell.line('retry', `${limit ?? 'the call'} waits ${Math.round(waitMs)} ms, as the service asks`),
    },
  });
  const handle = createWebhookHandler({
    client,
    on: { '*': (event) => tell.line('webhook', `${event.type} arrived, signature verified`) },
  });
  async function receive(request: Request): Promise<Response> {
    const copy = request.clone();
    const response = await handle(request);
    if (response.ok) {
      const event = (await copy.json()) as WebhookEvent;
      tell.delivered({ event, signature: copy.headers.get('x-service-signature') ?? '' });
    }
    return response;
  }
  return { sandbox, client };
}

/** The finished file of a job, as a URL that the page can show. */
export async function fileOf(
  client: GenClient,
  job: Job | string,
): Promise<{ url: string; type: string; sizeBytes: number }> {
  const response = await client.jobs.output(job);
  const blob = await response.blob();
  return { url: URL.createObjectURL(blob), type: blob.type, sizeBytes: blob.size };
}

/** What to say of an error. */
export function explain(error: unknown): string {
  if (GenError.isInstance(error)) {
    const { code, recovery } = error as { code?: unknown; recovery?: unknown };
    const more = [code, recovery && `recovery: ${recovery}`].filter(Boolean).join(', ');
    return `${error.name}: ${error.message}${more ? ` (${more})` : ''}`;
  }
  return String(error);
}
