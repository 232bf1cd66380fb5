import type { Job } from './job.js';

/** What every event carries (spec: Webhook event). Unknown fields pass through untouched. */
interface JobEvent {
  /** Event id, shape `evt_<job_id>_<outcome>`. The same on every copy: handle each id once. */
  id: string;
  /** Names the kind of object, a constant of the service. */
  object?: string;
  /** ISO 8601 timestamp. */
  created?: string;
  /** What the event is about. */
  data: {
    /** The job in its final state. It has `id` and `status`, and `providerOutputUrl` when there is a file. */
    job: Job;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

/** The job completed: its file can be downloaded (spec: Events). */
export interface JobCompletedEvent extends JobEvent {
  /** What happened. */
  type: 'job.completed';
}

/** The job failed; nothing was charged (spec: Events). */
export interface JobFailedEvent extends JobEvent {
  /** What happened. */
  type: 'job.failed';
}

/** The job was canceled (spec: Events). */
export interface JobCanceledEvent extends JobEvent {
  /** What happened. */
  type: 'job.canceled';
}

/** The job was blocked (spec: Events). */
export interface JobBlockedEvent extends JobEvent {
  /** What happened. */
  type: 'job.blocked';
}

/** An event of a type that the documentation does not have yet. What it carries in `data` is not checked. */
export interface UnknownWebhookEvent extends JobEvent {
  /** What happened. */
  type: string & {};
}

type DocumentedEvent = JobCompletedEvent | JobFailedEvent | JobCanceledEvent | JobBlockedEvent;

/** A verified webhook event, told apart by `type` (spec: Webhook event). Open: types to come pass. */
export type WebhookEvent = DocumentedEvent | UnknownWebhookEvent;

/** The documented event types (spec: Events). */
export type WebhookEventType = DocumentedEvent['type'];

/** The event of one documented type. */
export type WebhookEventOf<T extends WebhookEventType> = Extract<DocumentedEvent, { type: T }>;

const ABOUT_A_JOB = /^job\.(completed|failed|canceled|blocked)$/;

/**
 * Names the field that keeps `value` from being an event, or gives `undefined` for one. Only what the SDK relies on is
 * looked at: `id`, `type` and, on the documented types, `data.job.id` and `data.job.status`. Written by hand: a schema
 * library would outweigh the rest of the verification.
 */
export function flawOfEvent(value: unknown): string | undefined {
  const { id, type, data }: Record<string, unknown> = Object(value);
  const essentials: Record<string, unknown> = { id, type };
  if (ABOUT_A_JOB.test(String(type))) {
    const { job } = Object(data);
    essentials['data.job.id'] = job?.id;
    essentials['data.job.status'] = job?.status;
  }
  return Object.keys(essentials).find((name) => typeof essentials[name] !== 'string' || !essentials[name]);
}
