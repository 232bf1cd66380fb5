import { type Fields, isFields, isText } from './envelope.js';
import type { JobStatus } from './job.js';

/** Documented event types. */
export const WEBHOOK_EVENT_TYPES = ['job.completed', 'job.failed', 'job.canceled', 'job.blocked'] as const;

/** A documented event type. */
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/**
 * Job of an event. For other fields, such as `errorMessage` and `finalTokenCost`, call
 * `client.jobs.get(event.data.job.id)`.
 */
// A type alias, because an interface isn't assignable to `Job`, which the client's methods accept.
export type EventJob = {
  /** Job ID. */
  id: string;
  /** Final status. */
  status: JobStatus;
  /** Download link of the file, if there is one. Requires the API key, and expires. */
  providerOutputUrl?: string | null;
};

/** Job of a `job.completed` event. */
export type CompletedEventJob = EventJob & {
  /** Download link of the file. Requires the API key, and expires. */
  providerOutputUrl: string;
};

/** Fields of every event. Includes undocumented fields that the service sends. */
interface EventFields {
  /** Event ID in the form `evt_<job_id>_<outcome>`. Deduplicate events by it, because the service may send copies. */
  id: string;
  /** Type of the object. */
  object?: string;
  /** Creation time as an ISO 8601 timestamp. */
  created?: string;
}

interface JobWebhookEvent<Job extends EventJob = EventJob> extends EventFields {
  /** Payload of the event. */
  data: {
    /** The job in its final state. */
    job: Job;
  };
}

/** Sent if a job completed, and its file can be downloaded. */
export interface JobCompletedEvent extends JobWebhookEvent<CompletedEventJob> {
  /** Event type. */
  type: 'job.completed';
}

/** Sent if a job failed. It was not charged. */
export interface JobFailedEvent extends JobWebhookEvent {
  /** Event type. */
  type: 'job.failed';
}

/** Sent if a job was canceled. */
export interface JobCanceledEvent extends JobWebhookEvent {
  /** Event type. */
  type: 'job.canceled';
}

/** Sent if a job was blocked. */
export interface JobBlockedEvent extends JobWebhookEvent {
  /** Event type. */
  type: 'job.blocked';
}

declare const UNDOCUMENTED: unique symbol;

/**
 * An undocumented event type, which can be any string. Compare it with `String(event.type) === 'job.archived'`.
 */
// A branded string, so that `switch (event.type)` narrows. TypeScript can't exclude the documented types from a plain
// string, or from a brand without a template.
export type UnknownEventType = `${string}${string & { readonly [UNDOCUMENTED]: true }}`;

/** An event of an undocumented type. Its `data` is not validated. */
export interface UnknownWebhookEvent extends EventFields {
  /** Event type. */
  type: UnknownEventType;
  /** Payload of the event. Validate it before you use it. */
  data: unknown;
}

type DocumentedEvent = JobCompletedEvent | JobFailedEvent | JobCanceledEvent | JobBlockedEvent;

/** A verified webhook event, discriminated by `type`. Includes events of undocumented types. */
export type WebhookEvent = DocumentedEvent | UnknownWebhookEvent;

/** Event of a documented type. */
export type WebhookEventOf<T extends WebhookEventType> = Extract<DocumentedEvent, { type: T }>;

const DOCUMENTED_TYPES: readonly unknown[] = WEBHOOK_EVENT_TYPES;

/**
 * Returns the name of an invalid field, or undefined for a valid event. Requires only an ID, a type, and for job events
 * a job ID, because a rejected event would be lost. Doesn't use zod, which is larger than the rest of the verification.
 */
export function invalidFieldOfEvent(value: unknown): string | undefined {
  const { id, type } = fieldsOf(value);
  const requiredFields: Fields = { id, type };
  if (DOCUMENTED_TYPES.includes(type)) requiredFields['data.job.id'] = eventJob(value).id;
  return Object.keys(requiredFields).find((name) => !isText(requiredFields[name]));
}

/** Returns the ID of the event's job, if it has one. */
export function jobIdIn(event: unknown): string | undefined {
  const { id } = eventJob(event);
  return isText(id) ? id : undefined;
}

/** Returns the event's job, if it has an ID and a status. */
export function jobIn(event: unknown): EventJob | undefined {
  const { id, status } = eventJob(event);
  return isText(id) && isText(status) ? { id, status } : undefined;
}

/** Returns a frozen copy of the event's job, if the type is documented and matches the status. */
export function signedJobIn(event: unknown): Readonly<EventJob> | undefined {
  const { type } = fieldsOf(event);
  const job = jobIn(event);
  const { providerOutputUrl } = eventJob(event);
  if (!job || !DOCUMENTED_TYPES.includes(type) || type !== `job.${job.status}`) return undefined;
  return Object.freeze({ ...job, ...(isText(providerOutputUrl) && { providerOutputUrl }) });
}

function eventJob(event: unknown): Fields {
  return fieldsOf(fieldsOf(fieldsOf(event).data).job);
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
