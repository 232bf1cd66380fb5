import { GenError } from '../errors/index.js';
import * as option from '../options.js';
import type { CreateOptions } from '../resources/create.js';
import { nearest, noSuchOption } from '../schemas/show.js';
import { recoverRules } from '../waiting/wait-options.js';

/** Settings under `providerOptions.gen`: options of the call with the same meaning as everywhere, and fields of the service. */
export interface GenProviderOptions {
  /** At most one job is made under it. Several outputs get keys derived from it. @default a fresh UUID per call */
  readonly idempotencyKey?: string;
  /** Milliseconds between two reads of the job. @default the client's own schedule */
  readonly pollIntervalMs?: number;
  /** Milliseconds to wait for the job at most; `false` for no limit. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false;
  /** How many failures of a request are retried. @default the client's (3) */
  readonly maxRetries?: number;
  /** Whether what the documented rules refuse is refused before the call. @default the client's (true) */
  readonly preflight?: boolean | 'strict';
  /** How to go on after a failed job, as in `createAndWait`. Not with `poll`, `webhook` or `startVideo`. */
  readonly recover?: CreateOptions['recover'];
  /** Whether what waits for a review is sent again, as in `createAndWait`. @default true */
  readonly resubmitPending?: boolean;
  /** `after-job` deletes the uploads of the call when its job has ended. Not with `poll`, `webhook` or `startVideo`. */
  readonly cleanup?: 'after-job';
  /** A name of your own for the job, in events, the journal and spans. It is never sent to the service. */
  readonly label?: string;
  /** Fields of the service, sent as given: `resolution`, `character_ids`, `camera_fixed`, … */
  readonly [field: string]: unknown;
}

/** The options of a call and of its wait. */
export type CallOptions = Pick<
  GenProviderOptions,
  'pollIntervalMs' | 'timeoutMs' | 'maxRetries' | 'preflight' | 'recover' | 'resubmitPending' | 'cleanup' | 'label'
>;

/** The options of a call apart from the fields that go to the service. */
export interface ReadProviderOptions {
  readonly idempotencyKey: string | undefined;
  readonly options: CallOptions;
  readonly fields: Record<string, unknown>;
}

const NAME = 'providerOptions.gen';
const PROVIDER_OPTIONS = option.optionsOf({
  idempotencyKey: option.text,
  pollIntervalMs: option.milliseconds,
  timeoutMs: option.must<number | false>(
    'a positive number of milliseconds, or false for no limit',
    (value) => value === false || (typeof value === 'number' && value > 0),
  ),
  maxRetries: option.count,
  preflight: option.preflight,
  recover: option.anything,
  resubmitPending: option.flag,
  cleanup: option.oneOf('after-job'),
  label: option.text,
});
const OPTION_NAMES = Object.keys(PROVIDER_OPTIONS.shape);
/** Options of other calls of this package, which would mean nothing to the service. */
const OF_OTHER_CALLS: ReadonlyMap<string, string> = new Map([
  ['signal', 'Pass abortSignal beside providerOptions.'],
  ['abortSignal', 'Pass abortSignal beside providerOptions.'],
  ['headers', 'Pass headers beside providerOptions.'],
  ['budget', 'Give the client a budget: createGen({ client }).'],
  ['onJob', 'Give the client hooks: createGen({ client }).'],
  ['onCreated', 'providerMetadata.gen names each job.'],
  ['onUpdate', 'Use the client itself to follow a job.'],
  ['onUploadProgress', 'Use the client itself to follow an upload.'],
  ['throwOnFailure', 'A failed job rejects the call.'],
]);

/** Reads `providerOptions.gen`. Throws a GenError that names the option for a misspelt name and for a wrong value. */
export function readProviderOptions(providerOptions: Readonly<Record<string, unknown>>): ReadProviderOptions {
  const given = providerOptions.gen ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new GenError(`${NAME} must be an object.`);
  const own: Record<string, unknown> = {};
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (OPTION_NAMES.includes(name)) own[name] = value;
    else if (name !== 'idempotency_key') fields[checkedField(name)] = value;
  }
  option.checkOptions(NAME, PROVIDER_OPTIONS, own);
  const { idempotencyKey = Reflect.get(given, 'idempotency_key'), ...options } = own as GenProviderOptions;
  recoverRules(options.recover);
  return { idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : undefined, options, fields };
}

/** Refuses the options that need the SDK's own wait, where the AI SDK's core waits, or another process. */
export function refuseWaitingOptions({ options }: ReadProviderOptions): void {
  for (const name of ['recover', 'cleanup'] as const) {
    if (options[name] === undefined) continue;
    throw new GenError(
      `${NAME}.${name} needs generateVideo without poll and webhook: with them, or with startVideo, the AI SDK waits for the job itself.`,
    );
  }
}

/** The name of a field for the service. An option of another call, or a slip in one of ours, must not get there unseen. */
function checkedField(name: string): string {
  const instead = OF_OTHER_CALLS.get(name);
  if (instead !== undefined) throw new GenError(`${NAME} has no option "${name}". ${instead}`);
  if (nearest(name, OPTION_NAMES) !== undefined) throw new GenError(noSuchOption(NAME, name, OPTION_NAMES));
  return name;
}
