import { reasonOf } from '../../runtime/callbacks.js';
import { signatureOf, WEBHOOK_HEADERS } from '../../webhooks/signature.js';
import { DELIVERY_DELAYS_MS, DELIVERY_TIMEOUT_MS, EVENT_OBJECT } from '../world/choices.js';
import { deadline, realNow } from '../world/real-time.js';
import type { DeliveryRecord } from '../world/store.js';
import { keepLatest, type StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { linkOf, outputUrl } from './view-job.js';

/** Sends the event of a job that has just ended, as often as its outcome says. */
export function deliverEvent(world: World, job: StoredJob, at: number): void {
  for (let copy = 0; copy < job.webhookCopies; copy++)
    sendEvent(world, job, { at, reason: copy === 0 ? 'event' : 'copy' });
}

/** Sends a job's event again, as the service does when no 2xx came back. The event id stays the same. */
export function redeliver(world: World, job: StoredJob): Promise<void> {
  return sendEvent(world, job, { at: world.timeline.now(), reason: 'redelivery' });
}

/** Makes an attempt that is due. */
export function retryDelivery(world: World, job: StoredJob, at: number): void {
  sendEvent(world, job, { at, reason: 'retry' });
}

/** Resolves when no delivery is under way. */
export async function delivered({ inFlight }: World): Promise<void> {
  while (inFlight.size > 0) await Promise.all(inFlight);
}

/** Why and when an event is sent. */
interface EventSending {
  readonly at: number;
  readonly reason: DeliveryRecord['reason'];
}

function sendEvent(world: World, job: StoredJob, sending: EventSending): Promise<void> {
  if (job.webhookUrl === null) return Promise.resolve();
  const underway = world.activity.begin('work');
  const attempted = attemptDelivery(world, job, { url: job.webhookUrl, ...sending }).finally(() => {
    world.inFlight.delete(attempted);
    underway.end();
  });
  world.inFlight.add(attempted);
  return attempted;
}

async function attemptDelivery(
  world: World,
  job: StoredJob,
  { url, at, reason }: EventSending & { url: string },
): Promise<void> {
  const { state } = world;
  const body = JSON.stringify(webhookBody(world, job));
  const nowMs = world.settings.signsInOwnTime ? world.timeline.now() : realNow();
  const headers = await signedHeaders(job, body, {
    secret: state.accounts.get(job.account)?.webhookSecret ?? '',
    nowMs,
  });
  const answer = await postEvent(world, url, { headers, body });
  // After a reset or a restore the job is gone, and this attempt leaves no trace.
  if (state.jobs.get(job.id) !== job) return;
  job.deliveryCount += 1;
  const record: DeliveryRecord = {
    id: `dlv_${job.id}_${job.deliveryCount}`,
    eventId: eventId(job),
    jobId: job.id,
    type: `job.${job.status}`,
    url,
    at: new Date(at).toISOString(),
    attempt: job.deliveryCount,
    reason,
    headers,
    body,
    ...answer,
  };
  keepLatest(state.deliveries, record, world.settings.logLimit);
  if (reason === 'retry') job.retryCount += 1;
  const delay = DELIVERY_DELAYS_MS[job.retryCount];
  if (record.ok || delay === undefined || (reason !== 'event' && reason !== 'retry')) return;
  world.timeline.schedule({ kind: 'deliver', id: job.id, isLive: true }, world.timeline.now() + delay);
}

async function postEvent(
  { settings }: World,
  url: string,
  request: { headers: Record<string, string>; body: string },
): Promise<Pick<DeliveryRecord, 'status' | 'error' | 'ok'>> {
  try {
    const signal = deadline(DELIVERY_TIMEOUT_MS);
    const response = await settings.webhookFetch(url, { method: 'POST', ...request, redirect: 'manual', signal });
    await response.body?.cancel();
    return { status: response.status, error: null, ok: response.ok };
  } catch (error) {
    return { status: null, error: reasonOf(error), ok: false };
  }
}

/** The event's id: the same on every attempt and copy. */
function eventId(job: StoredJob): string {
  return `evt_${job.id}_${job.status}`;
}

function webhookBody({ settings }: World, job: StoredJob): Record<string, unknown> {
  const { id, status, baseUrl } = job;
  const isLink = settings.shapes.failedEventUrl === 'link';
  const providerOutputUrl = isLink ? linkOf(job, baseUrl) : outputUrl(job, baseUrl);
  return {
    object: EVENT_OBJECT,
    id: eventId(job),
    type: `job.${status}`,
    created: new Date(job.completedAt ?? job.createdAt).toISOString(),
    data: { job: { id, status, providerOutputUrl } },
  };
}

/** Signed with real time, except in a simulation: the receiver compares the stamp with its own clock. */
async function signedHeaders(
  job: StoredJob,
  body: string,
  { secret, nowMs }: { readonly secret: string; readonly nowMs: number },
): Promise<Record<string, string>> {
  const stamp = String(Math.floor(nowMs / 1000));
  const signature = `t=${stamp},v1=${await signatureOf(secret, stamp, body)}`;
  const values = [eventId(job), `job.${job.status}`, job.id, stamp, signature];
  const signed = WEBHOOK_HEADERS.map((name, at) => [name, values[at] ?? ''] as const);
  return { 'Content-Type': 'application/json', 'User-Agent': 'gen-client-sandbox', ...Object.fromEntries(signed) };
}
