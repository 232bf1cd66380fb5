import { type Fields, isFields, isText } from './envelope.js';
import type { JobStatus } from './job.js';

/** The documented event types. */
export const WEBHOOK_EVENT_TYPES = ['job.completed', 'job.failed', 'job.canceled', 'job.blocked'] as const;

/** The documented event types. */
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/**
 * The job as an event carries it: three fields. Read the other fields, such as `errorMessage` and
 * `finalTokenCost`, with `client.jobs.get(event.data.job.id)`.
 */
// A type alias, because an interface would not be assignable to `Job`, which the methods of the client take.
export type EventJob = {
  /** Job id, used in GET /v1/jobs/{id}. */
  id: string;
  /** The final status. */
  status: JobStatus;
  /** Authenticated download link of the finished file, when there is one. It needs the API key and it expires. */
  providerOutputUrl?: string | null;
};

/** The job of a `job.completed` event. It has a file. */
export type CompletedEventJob = EventJob & {
  /** Authenticated download link of the finished file. It needs the API key and it expires. */
  providerOutputUrl: string;
};

/** What every event carries. Unknown fields pass through untouched. */
interface EventFields {
  /** Event id, shape `evt_<job_id>_<outcome>`. It is the same on every copy: handle each id once. */
  id: string;
  /** The kind of object, a constant of the service. */
  object?: string;
  /** ISO 8601 timestamp. */
  created?: string;
}

interface JobWebhookEvent<Job extends EventJob = EventJob> extends EventFields {
  /** What the event is about. */
  data: {
    /** The job in its final state. */
    job: Job;
  };
}

/** The job completed: its file can be downloaded. */
export interface JobCompletedEvent extends JobWebhookEvent<CompletedEventJob> {
  /** What happened. */
  type: 'job.completed';
}

/** The job failed and was not charged. */
export interface JobFailedEvent extends JobWebhookEvent {
  /** What happened. */
  type: 'job.failed';
}

/** The job was canceled. */
export interface JobCanceledEvent extends JobWebhookEvent {
  /** What happened. */
  type: 'job.canceled';
}

/** The job was blocked. */
export interface JobBlockedEvent extends JobWebhookEvent {
  /** What happened. */
  type: 'job.blocked';
}

declare const UNDOCUMENTED: unique symbol;

/**
 * A type that the documentation does not list. At run time it is any string. To compare it with a type of your own, write
 * `String(event.type) === 'job.archived'`.
 */
// A marked string, so that `switch (event.type)` narrows: no documented type is assignable to it. Of a plain string, or
// one that is marked alone, TypeScript cannot exclude the documented types.
export type UnknownEventType = `${string}${string & { readonly [UNDOCUMENTED]: true }}`;

/** An event of a type that the documentation does not list. Its `data` is not checked. */
export interface UnknownWebhookEvent extends EventFields {
  /** What happened. */
  type: UnknownEventType;
  /** What the event is about. Check it before you use it. */
  data: unknown;
}

type DocumentedEvent = JobCompletedEvent | JobFailedEvent | JobCanceledEvent | JobBlockedEvent;

/** A verified webhook event, told apart by `type`. Events of other types pass, too. */
export type WebhookEvent = DocumentedEvent | UnknownWebhookEvent;

/** The event of one documented type. */
export type WebhookEventOf<T extends WebhookEventType> = Extract<DocumentedEvent, { type: T }>;

const TYPES: readonly unknown[] = WEBHOOK_EVENT_TYPES;

/**
 * The field that keeps `value` from being an event, or undefined for an event. A signed event with an id, a type and, where
 * the type is about a job, a job id is accepted whatever else it lacks: to refuse it would lose it. Written by hand, because
 * a schema library would outweigh the rest of the verification.
 */
export function flawOfEvent(value: unknown): string | undefined {
  const { id, type } = fieldsOf(value);
  const promised: Fields = { id, type };
  if (TYPES.includes(type)) promised['data.job.id'] = eventJob(value).id;
  return Object.keys(promised).find((name) => !isText(promised[name]));
}

/** The id of the job that an event is about, if it is about a job. */
export function jobIdIn(event: unknown): string | undefined {
  const { id } = eventJob(event);
  return isText(id) ? id : undefined;
}

/** The job that an event is about, with its status, if the event tells both. */
export function jobIn(event: unknown): EventJob | undefined {
  const { id, status } = eventJob(event);
  return isText(id) && isText(status) ? { id, status } : undefined;
}

/** The job of an event of a documented type, as a copy that nobody else holds. */
export function signedJobIn(event: unknown): Readonly<EventJob> | undefined {
  const { type } = fieldsOf(event);
  const job = jobIn(event);
  const { providerOutputUrl } = eventJob(event);
  if (!job || !TYPES.includes(type) || type !== `job.${job.status}`) return undefined;
  return Object.freeze({ ...job, ...(isText(providerOutputUrl) && { providerOutputUrl }) });
}

function eventJob(event: unknown): Fields {
  return fieldsOf(fieldsOf(fieldsOf(event).data).job);
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
