import * as z from 'zod/mini';
import { callback } from '../options.js';
import type { Job } from '../schemas/job.js';
import type { OutputDestination } from '../storage/destination.js';

/** What the activities of durable runs are made with. */
export interface ActivityOptions {
  /**
   * Where the file of a completed job is copied to, for runs with `store: true`: `s3()`, `r2()` or a destination of your own.
   * Its name must follow from the job alone, so that a copy which is repeated finds its object.
   * @default undefined: a run with `store: true` fails
   */
  readonly destination?: ((job: Job) => OutputDestination) | undefined;
}

/** The options of `createActivities`. */
export const ACTIVITY_OPTIONS = z.strictObject({ destination: callback });
