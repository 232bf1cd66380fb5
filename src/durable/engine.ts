import type { GenErrorJson } from '../rules/fate.js';

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** What a durable run has done for it outside of its workflow: a create, a read, or the storing of the file. */
export type ActivityName = 'create' | 'read' | 'store';

/** The activities of a client: JSON in, JSON out. Each may be repeated at any time without a second job or charge. */
export type Activities = Readonly<Record<ActivityName, (input: Json) => Promise<Json>>>;

/**
 * What a durable run needs of a workflow engine. The names of the steps are unique within a run, and the same whenever the
 * run is replayed.
 */
export interface DurableEngine {
  /** Runs an activity at least once, and remembers the first result for every replay. */
  call(step: string, activity: ActivityName, input: Json): Promise<Json>;
  /**
   * Waits for `ms` milliseconds, or until a webhook announces the end of the job. Resolves with true when it was woken, and
   * with false when the time has passed. Without a job (`null`) there is nothing that could wake it.
   */
  wait(step: string, jobId: string | null, ms: number): Promise<boolean>;
  /** Ends the workflow with an error that the engine must not repeat. */
  fail(error: GenErrorJson): never;
}
