// Notifications between processes. A webhook that one process receives wakes the waits of the others through the store.
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { wallOf } from '../runtime/clock.js';
import { isText } from '../schemas/envelope.js';
import { jobIdIn } from '../schemas/webhook-event.js';
import { type VerifiedWebhook, verifiedWebhook, verifyWebhook } from '../webhooks/verify.js';
import {
  type JobNotice,
  type JobNotification,
  type NotificationsInStore,
  notificationOf,
  type OpenSharedNotifications,
} from './notifications.js';

const TOPIC = 'jobs';

/**
 * Opens a store's notifications, and forwards them to `deliver` while at least one wait is open. If the store fails,
 * waits still learn the outcome by polling.
 */
export const openNotifications: OpenSharedNotifications = ({ store, config, warn, deliver }) => {
  const warnFailure = (action: string, reason: string) => warn(`the store failed to ${action}: ${reason}`);
  let listenerCount = 0;
  let stop: (() => void) | undefined;
  const receive = async (message: string) => {
    const notification = await parseNotification(message, config);
    if (notification) deliver(notification);
  };
  const listen = () => {
    listenerCount++;
    try {
      if (listenerCount === 1) stop = store.subscribe?.(TOPIC, (message) => callObserver(() => receive(message)));
    } catch (error) {
      warnFailure('subscribe to notifications from other processes', reasonOf(error));
    }
    return () => {
      listenerCount--;
      if (listenerCount > 0) return;
      callObserver(
        () => stop?.(),
        (reason) => warnFailure('unsubscribe from notifications', reason),
      );
      stop = undefined;
    };
  };
  return {
    publish: (event) =>
      callObserver(
        () => store.publish?.(TOPIC, serializeNotification(event)),
        (reason) => warnFailure('notify other processes', reason),
      ),
    listen: store.subscribe && listen,
  };
};

/** Serializes an event's notification. Includes the entire webhook if there is one, so that the receiver can verify it. */
function serializeNotification(event: JobNotice): string {
  const webhook: Partial<VerifiedWebhook> = verifiedWebhook(event) ?? {};
  const { body, signature } = webhook;
  const rawBody = typeof body === 'string' ? body : new TextDecoder().decode(body);
  return JSON.stringify({ id: webhook.job?.id ?? jobIdIn(event), body: rawBody, signature });
}

async function parseNotification(
  message: string,
  config: NotificationsInStore['config'],
): Promise<JobNotification | undefined> {
  const { id, body, signature }: Readonly<Record<string, unknown>> = JSON.parse(message) ?? {};
  if (!isText(id)) return undefined;
  try {
    const webhook = { body: String(body), headers: { 'x-service-signature': String(signature) } };
    const options = { secret: config.webhookSecrets(), now: () => wallOf(config.clock).now() };
    return notificationOf(await verifyWebhook(webhook, options), config.knownBaseUrl());
  } catch {
    // The event isn't verified, so it only triggers a poll.
    return { id };
  }
}
