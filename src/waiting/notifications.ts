// Converts webhook events to notifications for the waits in this process and in others.
import { GenError } from '../errors/index.js';
import { SHARING } from '../rules/options.js';
import { isFields } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import type { Store } from '../store/store.js';
import type { Config } from '../transport/config.js';
import { verifiedWebhook } from '../webhooks/verify.js';

/** A verified webhook event, or the part of it that identifies the job. */
export type JobNotice = WebhookEvent | { readonly data: { readonly job: { readonly id: string } } };

export interface JobNotification {
  readonly id: string;
  /** The completed job from a verified event. */
  readonly event?: Job | undefined;
  /** If true, a verified event reports that the job has ended. */
  readonly isVerified?: boolean | undefined;
}

/**
 * Returns the notification about the job that an event identifies, if any. Only a verified event of a completed job, with
 * its file on the service's origin, can end waits. Any other event only triggers a poll.
 */
export function notificationOf(event: unknown, baseUrl: string | undefined): JobNotification | undefined {
  if (!isFields(event)) {
    throw new GenError(
      'notify accepts an event from verifyWebhook: client.notify(await client.verifyWebhook(request)).',
    );
  }
  const job = verifiedWebhook(event)?.job;
  const id = job?.id ?? jobIdIn(event);
  if (id === undefined) return undefined;
  if (!job) return { id };
  const isDownloadable = job.status === 'completed' && isOnOrigin(job.providerOutputUrl, baseUrl);
  return { id, isVerified: true, ...(isDownloadable && { event: { ...job } }) };
}

/** Returns true if the client's API key may be sent to the file's URL. */
function isOnOrigin(url: string | null | undefined, baseUrl: string | undefined): boolean {
  if (!url || !baseUrl || !URL.canParse(url)) return false;
  return new URL(url).origin === new URL(baseUrl).origin;
}

/** Sends notifications to other processes, and passes theirs to `deliver`. */
export interface SharedNotifications {
  publish(event: JobNotice): void;
  /** Starts listening for one wait. Returns a function that stops it. Undefined if the store can't notify. */
  readonly listen: (() => () => void) | undefined;
}

export interface NotificationsInStore {
  readonly store: Store;
  readonly config: Pick<Config, 'clock' | 'webhookSecrets' | 'knownBaseUrl'>;
  readonly warn: (message: string) => void;
  readonly deliver: (notification: JobNotification) => void;
}

export type OpenSharedNotifications = (options: NotificationsInStore) => SharedNotifications;

/** Opens the store's notifications. Returns undefined for a store without them. */
export function sharedNotifications(options: NotificationsInStore): SharedNotifications | undefined {
  const { [SHARING]: sharing }: { readonly [SHARING]?: { readonly openNotifications: OpenSharedNotifications } } =
    options.store as object;
  return sharing?.openNotifications(options);
}
