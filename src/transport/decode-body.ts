import { ResponseError } from '../errors/index.js';
import { type Character, characterIn, characterSchema } from '../schemas/character.js';
import { type CreatedJob, warningsIn } from '../schemas/created-job.js';
import { type Fields, isFields, listIn, recordIn, unwrap } from '../schemas/envelope.js';
import { type Job, jobSchema } from '../schemas/job.js';
import type { DecodeContext } from './transport.js';

/** The part of a zod schema that is needed here. */
interface Essentials {
  safeParse(value: unknown): {
    readonly success: boolean;
    readonly error?: { readonly issues: readonly { readonly path: PropertyKey[] }[] } | undefined;
  };
}

/** What is to be found in an answer, and where. */
interface Wanted {
  readonly value: unknown;
  readonly essentials: Essentials;
  /** The documented place, for the message. */
  readonly at: string;
}

/** The job of an answer (spec: GET /v1/jobs/{job_id}): `data.job`, else `data`. */
export function decodeJob(body: unknown, context: DecodeContext): Job {
  return checked({ value: recordIn(body, 'job'), essentials: jobSchema, at: 'data.job' }, context);
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
  return checked({ value: characterIn(body), essentials: characterSchema, at: 'data.character' }, context);
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

function checked<T>(wanted: Wanted, context: DecodeContext): T {
  const { error, success } = wanted.essentials.safeParse(wanted.value);
  if (success) return wanted.value as T;
  const path = [wanted.at, ...(error?.issues[0]?.path ?? [])].join('.');
  const { method, path: url, idempotencyKey, attempts } = context;
  throw new ResponseError(`${method} ${url} answered without a usable "${path}".`, {
    method,
    url,
    idempotencyKey,
    attempts,
    path,
  });
}
