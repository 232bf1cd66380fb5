import * as z from 'zod/mini';
import type { GenClient } from '../../client/client.js';
import { type CallKind, checkClient, pollRunJob, sendRunCreate, stepResultOf } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import { errorJson } from '../../rules/failure-kind.js';
import { callback, checkOptions } from '../../rules/options.js';
import type { Recover, RunEvent } from '../../rules/run-state.js';
import { isFields } from '../../schemas/envelope.js';
import { isFinal, type Job } from '../../schemas/job.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { recoverRules } from '../../waiting/wait-options.js';
import { copyOutput, type StoredOutput } from '../storage/copy-output.js';
import type { OutputDestination } from '../storage/destination.js';
import { mayCopyLater } from '../storage/store-answers.js';
import type { Activities, Json } from './engines.js';

/** What the activities of durable runs are made with. */
export interface ActivityOptions {
  /**
   * Where the file of a completed job is copied to, for runs with `store: true`: `s3()`, `r2()` or a destination of your own.
   * Its name must follow from the job alone, so that a copy which is repeated finds its object.
   * @default undefined: a run with `store: true` fails
   */
  readonly destination?: ((job: Job) => OutputDestination) | undefined;
}

const ACTIVITY_OPTIONS = z.strictObject({ destination: callback });

/**
 * The activities of durable runs, done by `client`. Each gives what it saw as JSON, an error too, so that the run decides
 * about it and not the engine: nothing here has to be repeated by the engine, and everything may be.
 *
 * A call whose rate limit is full is not held: it says when to come back, and keeps its place until then while the run waits.
 *
 * @example
 * const activities = createActivities(new GenClient());
 */
export function createActivities(client: GenClient, options: ActivityOptions = {}): Activities {
  checkOptions('createActivities', ACTIVITY_OPTIONS, options);
  checkClient('createActivities', client);
  return {
    async create(input) {
      const { call, params, key, model, recover } = neededFields(input, ['call', 'params', 'key']);
      const create = { call: call as CallKind, params: params as object as Record<string, unknown>, key: String(key) };
      const { event } = await stepResultOf(async () => {
        const request = { ...create, model: typeof model === 'string' ? model : null };
        const { job } = await sendRunCreate(
          client,
          request,
          {},
          { recover: recoverRules(recover as Recover | undefined) },
        );
        return job;
      });
      return toJson(withJobError(event));
    },
    async read(input) {
      const { jobId } = neededFields(input, ['jobId']);
      const { event } = await stepResultOf(() => pollRunJob(client, String(jobId)));
      return toJson(withJobError(event));
    },
    async store(input) {
      const { job } = neededFields(input, ['job']);
      return toJson(await stored(client, job as object as Job, options));
    },
  };
}

/** What a copy came to: the run's event, with the file in the store. */
export type StoreEvent = RunEvent & { readonly stored?: StoredOutput };

/** Copies the file of a job. Repeated, it finds the object and moves no byte. */
async function stored(client: GenClient, job: Job, { destination }: ActivityOptions): Promise<StoreEvent> {
  try {
    if (destination === undefined) {
      throw new GenError(
        'createActivities: destination is missing, and the run has store: true. Pass { destination }.',
      );
    }
    return { type: 'stored', stored: await copyOutput(client, job, destination(job)) };
  } catch (error) {
    if (!GenError.isInstance(error)) throw error;
    const kind = mayCopyLater(error) ? 'lost' : 'unsent';
    return { type: 'failed', failure: { kind, retryAfterMs: null, error: errorJson(error) } };
  }
}

/** Adds the error of a job that ended without a file. */
function withJobError(event: RunEvent): RunEvent {
  if (event.type !== 'job' || !isFinal(event.job) || event.job.status === 'completed') return event;
  return { ...event, error: errorJson(jobErrorOf(event.job)) };
}

function neededFields(input: Json, needed: readonly string[]): Record<string, unknown> {
  if (isFields(input) && needed.every((name) => input[name] !== undefined)) return input;
  throw new GenError(`An activity needs ${needed.join(', ')}. Pass it the input that the run passes to call().`);
}

function toJson(value: RunEvent): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
