import type { Job } from '../schemas/job.js';

/** The namespaces whose `create` can be queued. */
export type CallKind = 'images' | 'videos' | 'videoEdits' | 'characters';

/** What a queue job carries: the call, and what has become of it. Everything needed to go on after a crash is here. */
export interface GenJobData {
  /** Which `create` it is. */
  readonly call: CallKind;
  /** The body of the call, as the service takes it. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The service's job, once there is one. Stored before anything else is done with it. */
  readonly jobId?: string | undefined;
  /** How often the call was made again because a reference was still in review. */
  readonly resubmissions?: number;
  /** How often the service refused it because a character was still in review. */
  readonly refusals?: number;
  /** Why it failed, as the error's JSON form. */
  readonly failure?: Readonly<Record<string, unknown>>;
}

/** The progress of a queue job: where the service's job stands. */
export interface GenJobProgress {
  /** The service's job id. */
  readonly jobId: string;
  /** Its status. */
  readonly status: string;
}

/** The result of a queue job: the completed job of the service. */
export type GenJobResult = Job;
