import type { Job } from './job.js';

/** What every event carries (spec: Webhook event). Unknown fields pass through untouched. */
interface JobEvent {
  /** The same on every copy: handle it once (shape `evt_<job_id>_<outcome>`). */
  id: string;
  object?: string;
  /** @remarks ISO 8601 timestamp. */
  created?: string;
  data: {
    /** In its final state (`id` and `status`, and `providerOutputUrl` when there is a file). */
    job: Job;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

/** The job completed: fetch its file (spec: Events). */
export interface JobCompletedEvent extends JobEvent {
  type: 'job.completed';
}

/** The job failed; nothing was charged (spec: Events). */
export interface JobFailedEvent extends JobEvent {
  type: 'job.failed';
}

/** The job was canceled (spec: Events). */
export interface JobCanceledEvent extends JobEvent {
  type: 'job.canceled';
}

/** The job was blocked (spec: Events). */
export interface JobBlockedEvent extends JobEvent {
  type: 'job.blocked';
}

/** A type to come; its `data` is unchecked (the documentation does not have it yet). */
export interface UnknownWebhookEvent extends JobEvent {
  type: string & {};
}

type DocumentedEvent = JobCompletedEvent | JobFailedEvent | JobCanceledEvent | JobBlockedEvent;

/** A verified event, told apart by `type` (open: types to come pass; spec: Webhook event). */
export type WebhookEvent = DocumentedEvent | UnknownWebhookEvent;

/** A documented event type (spec: Events). */
export type WebhookEventType = DocumentedEvent['type'];

/** The event of one type. */
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
