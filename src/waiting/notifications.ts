// Tells waits about webhook events, received by this process or by another one.
import { GenError } from '../errors/index.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { wallOf } from '../runtime/clock.js';
import { isFields, isText } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import type { Config } from '../transport/config.js';
import { type VerifiedWebhook, verifiedWebhook, verifyWebhook } from '../webhooks/verify.js';

/** A verified webhook event, or the part of it that identifies the job. */
export type JobNotice = WebhookEvent | { readonly data: { readonly job: { readonly id: string } } };

export interface JobNotification {
  readonly id: string;
  /** The completed job from a verified event. */
  readonly event?: Job | undefined;
  /** If true, a verified event reports that the job has ended. */
  readonly isVerified?: boolean | undefined;
}

type NotificationsConfig = Pick<Config, 'clock' | 'store' | 'webhookSecrets' | 'knownBaseUrl'>;

const TOPIC = 'jobs';

/**
 * Returns the job that an event identifies. Only a verified event of a completed job, with its file on the service's
 * origin, can end waits. Any other event only triggers a poll.
 */
export function notificationOf(event: unknown, baseUrl: string | undefined): JobNotification | undefined {
  if (!isFields(event)) {
    throw new GenError(
      'notify takes the event that verifyWebhook returned: client.notify(await client.verifyWebhook(request)).',
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
 * Forwards notifications to `deliver` while at least one wait is open. If the store fails, waits still learn the
 * outcome by polling.
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
    /** Starts listening for one wait. Returns a function that stops it. */
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

/** Includes the entire webhook if there is one, so that the receiver can verify it. */
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
    // Unverified, so it only triggers a poll.
    return { id };
  }
}

/** If true, the client's API key may be sent to the file's URL. */
function isOnOrigin(url: string | null | undefined, baseUrl: string | undefined): boolean {
  if (!url || !baseUrl || !URL.canParse(url)) return false;
  return new URL(url).origin === new URL(baseUrl).origin;
}
