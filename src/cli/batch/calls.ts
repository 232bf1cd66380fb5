import type { CreateOptions } from '../../resources/create.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import type { Fields } from '../../schemas/envelope.js';
import type { Job } from '../../schemas/job.js';
import { didYouMean } from '../../schemas/show.js';
import { UsageError } from '../errors.js';

/** The calls that make a job. */
const CALLS = ['videos', 'images', 'videoEdits', 'characters'] as const;
/** A call that makes a job, by its name on the client. */
export type Call = (typeof CALLS)[number];

/** The commands' names for them. */
const COMMAND_CALLS: ReadonlyMap<string, Call> = new Map([
  ['video', 'videos'],
  ['image', 'images'],
  ['edit', 'videoEdits'],
  ['character', 'characters'],
]);

/** The call that a row names. */
export function callNamed(name: unknown): Call {
  const call = CALLS.find((known) => known === name) ?? COMMAND_CALLS.get(String(name));
  if (call === undefined)
    throw new UsageError(`call "${String(name)}" does not exist. ${didYouMean(String(name), CALLS)}`);
  return call;
}

/** The documented rules of a call. Throws the PreflightError with the catalog's message. */
export function checkCall(call: Call, params: Fields): void {
  if (call === 'videos') checkVideo(params, () => {});
  else if (call === 'images') checkImage(params, () => {});
  else if (call === 'videoEdits') checkVideoEdit(params, () => {});
  else checkCharacter(params);
}

/** What making jobs needs of the client. */
type JobMakers = {
  readonly [C in Call]: { createAndWait(params: never, options: CreateOptions): Promise<Job> };
};

/** Makes the job of a row and waits for it. The rules have looked at the params. */
export function makeJob(
  client: JobMakers,
  { call, params }: { readonly call: Call; readonly params: Fields },
  options: CreateOptions,
): Promise<Job> {
  return client[call].createAndWait(params as never, { ...options, throwOnFailure: false });
}
