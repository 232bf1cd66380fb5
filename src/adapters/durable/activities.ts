import type { GenClient } from '../../client/client.js';
import { checkClient, createResultOf, pollRunJob, sendRunCreate } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import { errorJson } from '../../rules/failure-kind.js';
import { callback, checkOptions, optionsOf } from '../../rules/options.js';
import type { Recover, RunEvent } from '../../rules/run-state.js';
import { isFields } from '../../schemas/envelope.js';
import { isFinal, type Job, type JobCall } from '../../schemas/job.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { recoverRules } from '../../waiting/wait-options.js';
import { copyOutput, type StoredOutput } from '../storage/copy-output.js';
import type { OutputDestination } from '../storage/destination.js';
import { mayCopyLater } from '../storage/store-responses.js';
import type { Activities, Json } from './engines.js';

/** Options for {@link createActivities}. */
export interface ActivityOptions {
  /**
   * Returns the destination of a completed job's file, for runs with `store: true`: `s3()`, `r2()`, or your own. Derive the
   * key only from the job, so that a repeated copy finds its object.
   * @default undefined: a run with `store: true` fails
   */
  readonly destination?: ((job: Job) => OutputDestination) | undefined;
}

const ACTIVITY_OPTIONS = optionsOf({ destination: callback });

/**
 * Creates the activities of durable runs. Each returns its result or its error as JSON, so that the run decides how to
 * continue. If no rate-limit slot is free, a create returns how long to wait for one, and the run sleeps meanwhile.
 *
 * @example
 * const activities = createActivities(new GenClient());
 */
export function createActivities(client: GenClient, options: ActivityOptions = {}): Activities {
  checkOptions('createActivities', ACTIVITY_OPTIONS, options);
  checkClient('createActivities', client);
  return {
    async create(input) {
      const { call, params, key, model, recover } = requireFields(input, ['call', 'params', 'key']);
      const create = { call: call as JobCall, params: params as object as Record<string, unknown>, key: String(key) };
      const { event } = await createResultOf(async () => {
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
      const { jobId } = requireFields(input, ['jobId']);
      const { event } = await pollRunJob(client, String(jobId));
      return toJson(withJobError(event));
    },
    async store(input) {
      const { job } = requireFields(input, ['job']);
      return toJson(await copyFile(client, job as object as Job, options));
    },
  };
}

/** A run event with the stored file. */
export type StoreEvent = RunEvent & { readonly stored?: StoredOutput };

/** Copies a job's file. A repeated copy finds the object and transfers nothing. */
async function copyFile(client: GenClient, job: Job, { destination }: ActivityOptions): Promise<StoreEvent> {
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

/** Returns the event, with the error of a job that ended without completing. */
function withJobError(event: RunEvent): RunEvent {
  if (event.type !== 'job' || !isFinal(event.job) || event.job.status === 'completed') return event;
  return { ...event, error: errorJson(jobErrorOf(event.job)) };
}

function requireFields(input: Json, names: readonly string[]): Record<string, unknown> {
  if (isFields(input) && names.every((name) => input[name] !== undefined)) return input;
  throw new GenError(`An activity needs ${names.join(', ')}. Pass it the input that the run passes to call().`);
}

function toJson(value: RunEvent): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
