// How the end of a job becomes known to the waits of a process: by an event of a webhook, here or in another process.
import { GenError } from '../errors/index.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { wallOf } from '../runtime/clock.js';
import { isFields, isText } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import type { Config } from '../transport/config.js';
import { type VerifiedWebhook, verifiedWebhook, verifyWebhook } from '../webhooks/verify.js';

/** A verified webhook event, or the part of it that says which job it is about. */
export type JobNotice = WebhookEvent | { readonly data: { readonly job: { readonly id: string } } };

export interface JobNotification {
  readonly id: string;
  /** The completed job as a verified event shows it. */
  readonly event?: Job | undefined;
  /** Whether a verified event says that the job has ended. */
  readonly isVerified?: boolean | undefined;
}

type NotificationsConfig = Pick<Config, 'clock' | 'store' | 'webhookSecrets' | 'knownBaseUrl'>;

const TOPIC = 'jobs';

/** What an event says of a job. An event that was not verified, or whose file is elsewhere, only says that it is to be read. */
export function notificationOf(event: unknown, baseUrl: string | undefined): JobNotification | undefined {
  if (!isFields(event)) {
    throw new GenError(
      'notify takes the event that verifyWebhook gave: client.notify(await client.verifyWebhook(request)).',
    );
  }
  const job = verifiedWebhook(event)?.job;
  const id = job?.id ?? jobIdIn(event);
  if (id === undefined) return undefined;
  if (!job) return { id };
  const isShown = job.status === 'completed' && isOnOrigin(job.providerOutputUrl, baseUrl);
  return { id, isVerified: true, ...(isShown && { event: { ...job } }) };
}

/**
 * The notifications of one client, which go to `deliver` while at least one wait is open. The store may fail or throw: then the
 * waits of other processes go on by their reads.
 */
export function createNotifications(
  config: NotificationsConfig,
  warn: (message: string) => void,
  deliver: (notification: JobNotification) => void,
) {
  const { store } = config;
  const failed = (reason: string) => warn(`the waits of other processes are not notified: ${reason}`);
  let listening = 0;
  let stop: (() => void) | undefined;
  const receive = async (message: string) => {
    const notification = await notificationIn(message, config);
    if (notification) deliver(notification);
  };
  return {
    publish(event: JobNotice): void {
      callObserver(() => store?.publish?.(TOPIC, notificationText(event)), failed);
    },
    /** A wait begins. Returns the function that ends its part. */
    listen(): () => void {
      listening++;
      try {
        if (listening === 1) stop = store?.subscribe?.(TOPIC, (message) => callObserver(() => receive(message)));
      } catch (error) {
        failed(reasonOf(error));
      }
      return () => {
        listening--;
        if (listening > 0) return;
        callObserver(() => stop?.(), failed);
        stop = undefined;
      };
    },
  };
}

/** The whole webhook where there is one, so that its receiver can verify it. */
function notificationText(event: JobNotice): string {
  const webhook: Partial<VerifiedWebhook> = verifiedWebhook(event) ?? {};
  const { body, signature } = webhook;
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  return JSON.stringify({ id: webhook.job?.id ?? jobIdIn(event), body: text, signature });
}

async function notificationIn(message: string, config: NotificationsConfig): Promise<JobNotification | undefined> {
  const { id, body, signature }: Readonly<Record<string, unknown>> = JSON.parse(message) ?? {};
  if (!isText(id)) return undefined;
  try {
    const received = { body: String(body), headers: { 'x-service-signature': String(signature) } };
    const options = { secret: config.webhookSecrets(), now: () => wallOf(config.clock).now() };
    return notificationOf(await verifyWebhook(received, options), config.knownBaseUrl());
  } catch {
    // No webhook, or none that this process can verify: it only says that the job is to be read.
    return { id };
  }
}

/** Whether the file is where the client's key may be sent. */
function isOnOrigin(url: string | null | undefined, baseUrl: string | undefined): boolean {
  if (!url || !baseUrl || !URL.canParse(url)) return false;
  return new URL(url).origin === new URL(baseUrl).origin;
}
