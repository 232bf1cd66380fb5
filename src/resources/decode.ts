import { ResponseError } from '../errors/index.js';
import { CHARACTER_ESSENTIALS, type Character, characterIn } from '../schemas/character.js';
import { type CreatedJob, warningsIn } from '../schemas/created-job.js';
import { type Fields, isFields, listIn, recordIn, unwrap } from '../schemas/envelope.js';
import { missingText } from '../schemas/essentials.js';
import { JOB_ESSENTIALS, type Job } from '../schemas/job.js';
import type { DecodeContext } from '../transport/transport.js';

/** What is to be found in an answer, and where. */
export interface Wanted {
  readonly value: unknown;
  readonly essentials: readonly string[];
  /** The documented place, for the message. */
  readonly at: string;
}

/** The job of an answer (spec: GET /v1/jobs/{job_id}): `data.job`, else `data`. */
export function decodeJob(body: unknown, context: DecodeContext): Job {
  return checkedRecord({ value: recordIn(body, 'job'), essentials: JOB_ESSENTIALS, at: 'data.job' }, context);
}

/** The answer to a create (spec: Create response envelope). */
export function decodeCreatedJob(body: unknown, context: DecodeContext): CreatedJob {
  const job = decodeJob(body, context);
  const data = unwrap(body);
  return {
    ...(isFields(data) && data !== job ? data : {}),
    job,
    warnings: warningsIn(body, job),
    idempotencyKey: context.idempotencyKey ?? '',
  };
}

/** A character (spec: Character): `data.character`, else `data`. */
export function decodeCharacter(body: unknown, context: DecodeContext): Character {
  return checkedRecord({ value: characterIn(body), essentials: CHARACTER_ESSENTIALS, at: 'data.character' }, context);
}

/** A list that the spec does not show, under the name `noun`, beside what else the answer holds. */
export function decodeList<N extends string>(noun: N): (body: unknown) => Fields & Record<N, Fields[]> {
  return (body) => {
    const data = unwrap(body);
    return { ...(isFields(data) ? data : {}), [noun]: listIn(body, noun) } as Fields & Record<N, Fields[]>;
  };
}

/** An object that the spec does not show, without its envelope; an empty one for an empty body. */
export function decodeFields(body: unknown): Fields {
  const data = unwrap(body);
  return isFields(data) ? data : data === undefined || data === null ? {} : { data };
}

/** The record that an answer holds. Throws a ResponseError that names the first of its essentials which is not there. */
export function checkedRecord<T>({ value, essentials, at }: Wanted, context: DecodeContext): T {
  const missing = isFields(value) ? missingText(value, essentials) : '';
  if (missing === undefined) return value as T;
  const { method, path: url, idempotencyKey, attempts } = context;
  const path = missing ? `${at}.${missing}` : at;
  const details = { method, url, idempotencyKey, attempts, path };
  throw new ResponseError(`${method} ${url} answered without a usable "${path}".`, details);
}
