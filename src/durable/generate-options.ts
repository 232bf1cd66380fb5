import * as z from 'zod/mini';
import * as option from '../options.js';
import type { CallKind } from '../resources/run-calls.js';
import type { Recover } from '../rules/run-state.js';
import { JOB_CALLS } from '../schemas/job.js';

/** What a durable run makes, and how. */
export interface GenerateOptions {
  /** Whose `create` it is: `images`, `videos`, `videoEdits` or `characters`. */
  readonly call: CallKind;
  /** The body of the create, as JSON. Files are given as upload ids or URLs. */
  readonly params: object;
  /** The key of the first create. Take the id of the workflow's run: a key makes one job, however often it is sent. */
  readonly key: string;
  /**
   * Milliseconds that the waits of the run may add up to before it fails with a WaitTimeoutError; its job goes on. `false`
   * for no limit. It is for the run, not for a try.
   * @default 1_800_000 (30 min)
   */
  readonly timeoutMs?: number | false | undefined;
  /**
   * How to go on after a failed job, by its error code, as in `createAndWait`: a number of further tries, or one try with
   * each of some models.
   * @default {}: a failed job ends the run
   */
  readonly recover?: Recover | undefined;
  /** Whether the file is copied to the `destination` of the activities before the run ends. @default false */
  readonly store?: boolean | undefined;
}

/** The options of `generate`. */
export const GENERATE_OPTIONS = z.strictObject({
  call: option.oneOf(...JOB_CALLS),
  params: option.anObject,
  key: option.text,
  timeoutMs: option.must<number | false>(
    'a number of milliseconds above 0, or false for no limit',
    (value) => value === false || (typeof value === 'number' && value > 0),
  ),
  recover: z.optional(z.any()),
  store: option.flag,
});
