import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CreateCallOptions, CreateOptions } from '../resources/create.js';
import { systemRandom } from '../runtime/clock.js';
import type { CreatedJob, Job } from '../schemas/job.js';
import { checkFiles } from '../uploading/body-files.js';
import type { JobFlags } from './command.js';
import { UsageError } from './errors.js';
import { namingFiles, type ReferenceSlot, referenceParams, uploadProgress } from './references.js';
import { baseUrlOf, type Machine, type Session, variable } from './session.js';
import { saveTo, tryTarget } from './target.js';
import { describeJob, resumeLine, watching } from './wait.js';

/** A job to make: its params, the rules for them and the calls that make it. */
interface CommandPlan<Params extends object> {
  /** Params but for the references. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly references: readonly ReferenceSlot[];
  /** The documented rules; throws the PreflightError with the catalog's message. */
  readonly check: (params: Record<string, unknown>) => void;
  readonly create: (params: Params, options: CreateCallOptions) => PromiseLike<CreatedJob>;
  readonly createAndWait: (params: Params, options: CreateOptions) => Promise<Job>;
}

/**
 * Makes a job, waits for it and saves its file. All that can be refused without a call is refused first, then the target
 * is tried: nothing is paid for and then thrown away. Files go to the client by value.
 */
export async function runJobCommand<Params extends object>(
  session: Session,
  plan: CommandPlan<Params>,
  flags: JobFlags,
): Promise<void> {
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file: leave out --no-wait, or save later with "gen-client wait".');
  }
  const given = { ...plan.params, ...referenceParams(plan.references), webhook_url: flags.webhook };
  const fields = definedOnly(given);
  plan.check(fields);
  const idempotencyKey = flags.idempotencyKey ?? systemRandom.uuid();
  const sentKey = { key: idempotencyKey, baseUrl: baseUrlOf(flags, session.machine) };
  await tryTarget(session, { ...flags, mayExist: isKnownKey(session.machine, sentKey) });
  const uploads = uploadProgress(session, plan.references);
  session.createKey = idempotencyKey;
  session.outcome = { idempotencyKey };
  const { onUploadProgress } = uploads;
  // The rules have looked at them: what is left to the types is the spelling of the names above.
  const options = { idempotencyKey, signal: session.signal, onUploadProgress };
  const accepted = () => rememberKey(session.machine, sentKey);
  const attempt = { params: fields as Params, options, accepted };
  try {
    await checkFiles(fields);
    if (flags.wait) await waitAndSave(session, plan, { ...attempt, flags });
    else await startOnly(session, plan, attempt);
  } catch (error) {
    throw namingFiles(error, plan.references);
  } finally {
    uploads.stop();
  }
}

interface JobAttempt<Params> {
  readonly params: Params;
  readonly options: CreateCallOptions & { readonly idempotencyKey: string };
  /** Called when there is a job. */
  readonly accepted: () => void;
}

async function startOnly<Params extends object>(
  session: Session,
  plan: CommandPlan<Params>,
  { params, options, accepted }: JobAttempt<Params>,
): Promise<void> {
  const created = await plan.create(params, options);
  accepted();
  session.terminal.result({ ...created }, [
    ...describeJob(created.job, created),
    `Go on with: ${resumeLine(created.job.id, {})}`,
  ]);
}

async function waitAndSave<Params extends object>(
  session: Session,
  plan: CommandPlan<Params>,
  { params, options, accepted, flags }: JobAttempt<Params> & { flags: JobFlags },
): Promise<void> {
  const { terminal, signal } = session;
  const { idempotencyKey } = options;
  let created: CreatedJob | undefined;
  const watch = watching(session, flags);
  try {
    const job = await plan.createAndWait(params, {
      ...options,
      ...watch.options,
      onCreated(made) {
        created = made;
        accepted();
        const { job, quoted_token_cost: quoted, warnings } = made;
        session.outcome.warnings = warnings;
        terminal.note(`Job ${job.id} accepted${quoted === undefined ? '' : `, ${quoted} tokens reserved`}.`);
        for (const warning of warnings) terminal.note(`Warning: ${warning}`);
        watch.began(job);
      },
    });
    watch.stop();
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    const result = { job, idempotencyKey, warnings: created?.warnings ?? [], file };
    terminal.result(result, describeJob(job, { file, hasSave: true }));
  } finally {
    watch.stop();
    signal.throwIfAborted();
  }
}

/** Without what was not given, so that the body says only what the caller said. */
function definedOnly(params: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/** More keys than these are not remembered. */
const MOST_KEYS = 10_000;

/** An idempotency key, and the service that it was sent to. */
interface SentKey {
  readonly baseUrl: string;
  readonly key: string;
}

/**
 * Whether a job was made under the key on this machine, so that the file that is there may be its own. Without a state that
 * can be read, no key is known: a file that is there is then refused before anything is paid.
 */
function isKnownKey(machine: Machine, sent: SentKey): boolean {
  return readKeys(fileIn(machine)).includes(keyHash(sent));
}

/** Remembers that a job was made under the key. Only a hash of it is kept. */
function rememberKey(machine: Machine, sent: SentKey): void {
  const path = fileIn(machine);
  const known = readKeys(path);
  const hash = keyHash(sent);
  if (known.includes(hash)) return;
  try {
    mkdirSync(folderIn(machine), { recursive: true });
    if (known.length < MOST_KEYS) appendFileSync(path, `${hash}\n`, { mode: 0o600 });
    else writeFileSync(path, `${[...known.slice(-MOST_KEYS / 2), hash].join('\n')}\n`, { mode: 0o600 });
  } catch {
    // The job is paid for, and nothing but a later command without --force depends on this.
  }
}

function readKeys(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

function fileIn(machine: Machine): string {
  return join(folderIn(machine), 'keys');
}

/** Where programs keep what they remember, by the XDG base directory specification, and its counterpart on Windows. */
function folderIn(machine: Machine): string {
  const state = variable(machine, 'XDG_STATE_HOME', 'LOCALAPPDATA') ?? join(homedir(), '.local', 'state');
  return join(state, 'gen-client');
}

function keyHash({ baseUrl, key }: SentKey): string {
  return createHash('sha256').update(`${baseUrl}\n${key}`).digest('hex').slice(0, 32);
}
