import type { Job } from '../index.js';

/** Which `create`. */
export type CallKind = 'images' | 'videos' | 'videoEdits' | 'characters';

/** What a queue job carries (the call, and what has become of it: everything needed to go on after a crash). */
export interface GenJobData {
  readonly call: CallKind;
  readonly params: Readonly<Record<string, unknown>>;
  /** @remarks The service's job, once there is one. Stored before anything else is done with it. */
  readonly jobId?: string | undefined;
  /** @remarks How often the call was made again because a reference was still in review. */
  readonly resubmissions?: number;
  /** @remarks How often the service refused it because a character was still in review. */
  readonly refusals?: number;
  /** @remarks Why it failed, as the error's JSON form. */
  readonly failure?: Readonly<Record<string, unknown>>;
}

/** Where the service's job stands. */
export interface GenJobProgress {
  readonly jobId: string;
  readonly status: string;
}

/** The completed job. */
export type GenJobResult = Job;
