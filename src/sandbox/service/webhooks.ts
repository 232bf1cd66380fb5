import { reasonOf } from '../../runtime/callbacks.js';
import { signatureOf, WEBHOOK_HEADERS } from '../../webhooks/signature.js';
import { DELIVERY_DELAYS_MS, DELIVERY_TIMEOUT_MS, EVENT_OBJECT } from '../world/choices.js';
import { deadline, realNow } from '../world/real-time.js';
import { type DeliveryRecord, keepLatest, outputUrl, type StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';

/** Sends the event of a job that has just ended, as often as its outcome says. */
export function deliverEvent(world: World, job: StoredJob, at: number): void {
  for (let copy = 0; copy < job.webhookCopies; copy++) sendEvent(world, job, at, copy === 0 ? 'event' : 'copy');
}

/** Sends the event of a job once, as the service does again when no 2xx came back. The event id stays the same. */
export function sendEvent(world: World, job: StoredJob, at: number, reason: DeliveryRecord['reason']): Promise<void> {
  if (job.webhookUrl === null) return Promise.resolve();
  const underway = world.activity.begin('work');
  const attempted = attemptDelivery(world, job, { url: job.webhookUrl, at, reason }).finally(() => {
    world.inFlight.delete(attempted);
    underway.end();
  });
  world.inFlight.add(attempted);
  return attempted;
}

/** Resolves when no delivery is under way. */
export async function delivered({ inFlight }: World): Promise<void> {
  while (inFlight.size > 0) await Promise.all(inFlight);
}

async function attemptDelivery(
  world: World,
  job: StoredJob,
  { url, at, reason }: { url: string; at: number; reason: DeliveryRecord['reason'] },
): Promise<void> {
  const { state, settings, timeline } = world;
  const eventId = `evt_${job.id}_${job.status}`;
  const type = `job.${job.status}`;
  const body = JSON.stringify({
    object: EVENT_OBJECT,
    id: eventId,
    type,
    created: new Date(job.completedAt ?? job.createdAt).toISOString(),
    data: { job: { id: job.id, status: job.status, providerOutputUrl: outputUrl(job, job.baseUrl) } },
  });
  // In real time, except in a simulation: the receiver compares the stamp with its own clock.
  const stamp = String(Math.floor((settings.signsInOwnTime ? timeline.now() : realNow()) / 1000));
  const secret = state.accounts.get(job.account)?.webhookSecret ?? '';
  const signature = `t=${stamp},v1=${await signatureOf(secret, stamp, body)}`;
  const values = [eventId, type, job.id, stamp, signature];
  const signed = Object.fromEntries(WEBHOOK_HEADERS.map((name, index) => [name, values[index] ?? '']));
  const headers = { 'Content-Type': 'application/json', 'User-Agent': 'gen-client-sandbox', ...signed };
  const answer = await postEvent(settings.webhookFetch, url, { headers, body });
  // After a reset the job is gone, and this attempt leaves no trace.
  if (state.jobs.get(job.id) !== job) return;
  job.deliveryCount += 1;
  const attempt = job.deliveryCount;
  const id = `dlv_${job.id}_${attempt}`;
  const sent = { id, eventId, jobId: job.id, type, url, at: new Date(at).toISOString(), attempt, reason };
  keepLatest(state.deliveries, { ...sent, headers, body, ...answer });
  if (reason === 'retry') job.retryCount += 1;
  const delay = DELIVERY_DELAYS_MS[job.retryCount];
  if (answer.ok || delay === undefined || (reason !== 'event' && reason !== 'retry')) return;
  timeline.schedule({ kind: 'deliver', id: job.id, isLive: true }, timeline.now() + delay);
}

async function postEvent(
  send: World['settings']['webhookFetch'],
  url: string,
  request: { headers: Record<string, string>; body: string },
): Promise<Pick<DeliveryRecord, 'status' | 'error' | 'ok'>> {
  try {
    const signal = deadline(DELIVERY_TIMEOUT_MS);
    const response = await send(url, { method: 'POST', ...request, redirect: 'manual', signal });
    await response.body?.cancel();
    return { status: response.status, error: null, ok: response.ok };
  } catch (error) {
    return { status: null, error: reasonOf(error), ok: false };
  }
}
