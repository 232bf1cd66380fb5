import { signatureOf, WEBHOOK_HEADERS } from '../../webhooks/signature.js';
import { keepLatest } from '../http/request-log.js';
import { DELIVERY_DELAYS_MS, DELIVERY_TIMEOUT_MS, EVENT_OBJECT } from '../world/choices.js';
import { deadline, realNow } from '../world/clock.js';
import type { DeliveryRecord } from '../world/records.js';
import type { DueEvent, StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { outputUrl } from './job-view.js';

/** Sends the event of a job that has just ended, as often as its outcome says. */
export function deliverEvent(world: World, job: StoredJob, at: number): void {
  for (let copy = 0; copy < job.webhookCopies; copy++) send(world, job, { at, reason: copy === 0 ? 'event' : 'copy' });
}

/** Sends a job's event again, as the service does after a refusal or a lost answer; the event id stays the same. */
export function redeliver(world: World, job: StoredJob): Promise<void> {
  return send(world, job, { at: world.timeline.now(), reason: 'redelivery' });
}

/** Makes the attempt whose time has come: `event.id` is the job's. */
export function retryDelivery(world: World, event: DueEvent): void {
  const job = world.state.jobs.get(event.id);
  if (job) send(world, job, { at: event.at, reason: 'retry' });
}

/** Why and when an event goes out. */
interface Sending {
  readonly at: number;
  readonly reason: DeliveryRecord['reason'];
}

function send(world: World, job: StoredJob, sending: Sending): Promise<void> {
  if (job.webhookUrl === null) return Promise.resolve();
  const under = attempt(world, job, { url: job.webhookUrl, ...sending }).finally(() => world.inFlight.delete(under));
  world.inFlight.add(under);
  return under;
}

async function attempt(world: World, job: StoredJob, { url, at, reason }: Sending & { url: string }): Promise<void> {
  const { state } = world;
  const body = JSON.stringify(eventOf(job));
  const headers = await signedHeaders(job, body, state.accounts.get(job.account)?.webhookSecret ?? '');
  const answer = await post(world, url, { headers, body });
  // A restored or reset sandbox has forgotten the job: what was under way leaves no trace.
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

async function post(
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
    return { status: null, error: error instanceof Error ? error.message : String(error), ok: false };
  }
}

/** The event's id: the same on every attempt and copy (spec: Webhook event). */
function eventId(job: StoredJob): string {
  return `evt_${job.id}_${job.status}`;
}

function eventOf(job: StoredJob): Record<string, unknown> {
  return {
    object: EVENT_OBJECT,
    id: eventId(job),
    type: `job.${job.status}`,
    created: new Date(job.completedAt ?? job.createdAt).toISOString(),
    data: { job: { id: job.id, status: job.status, providerOutputUrl: outputUrl(job, job.baseUrl) } },
  };
}

/** Signed with real time whatever the sandbox's clock says: the receiver compares the stamp with its own. */
async function signedHeaders(job: StoredJob, body: string, secret: string): Promise<Record<string, string>> {
  const stamp = String(Math.floor(realNow() / 1000));
  const signature = `t=${stamp},v1=${await signatureOf(secret, stamp, body)}`;
  const values = [eventId(job), `job.${job.status}`, job.id, stamp, signature];
  const signed = WEBHOOK_HEADERS.map((name, at) => [name, values[at] ?? ''] as const);
  return { 'Content-Type': 'application/json', 'User-Agent': 'gen-client-sandbox', ...Object.fromEntries(signed) };
}
