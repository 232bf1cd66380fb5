import { randomUUID } from 'node:crypto';
import type { CreateOptions } from '../resources/create-options.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { Job } from '../schemas/job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { UsageError } from './exit-codes.js';
import type { JobFlags } from './flags.js';
import {
  checkFiles,
  deleteUploads,
  isRefusal,
  plannedParams,
  type ReferenceSlot,
  uploadReferences,
} from './references.js';
import type { Session } from './session.js';
import { describeJob } from './show-job.js';
import { saveTo, tryTarget } from './target.js';
import { resumeCommand, watching } from './wait.js';

/** A job to make: its parameters, the rules for them and the calls that make it. */
export interface JobPlan<Params extends object> {
  /** Parameters but for the references. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly references: readonly ReferenceSlot[];
  /** The documented rules; throws the PreflightError with the catalog's message. */
  readonly check: (params: Record<string, unknown>) => void;
  readonly create: (params: Params, options: RequestOptions) => PromiseLike<CreatedJob>;
  readonly createAndWait: (params: Params, options: CreateOptions) => Promise<Job>;
}

/**
 * Makes a job, waits for it and saves its file. All that can be refused without a call is refused first, then the
 * target is looked at, then files are uploaded: nothing is paid for and then thrown away.
 */
export async function runJob<Params extends object>(
  session: Session,
  plan: JobPlan<Params>,
  flags: JobFlags,
): Promise<void> {
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file: leave out --no-wait, or save later with "gen-client wait".');
  }
  const fields = definedOnly({ ...plan.params, webhook_url: flags.webhook });
  plan.check({ ...fields, ...plannedParams(plan.references) });
  await tryTarget(session, flags);
  await checkFiles(plan.references);
  const references = await uploadReferences(session, plan.references);
  // The rules have looked at them: what is left to the types is the spelling of the names above.
  const params = { ...fields, ...references.params } as Params;
  const idempotencyKey = flags.idempotencyKey ?? randomUUID();
  session.hint = `It is not known whether a job was made. Run the same command again with --idempotency-key ${idempotencyKey}: it takes up the same job and pays once.`;
  session.outcome = { idempotencyKey };
  try {
    if (flags.wait) await waitAndSave(session, plan, { flags, params, idempotencyKey });
    else await startOnly(session, plan, { params, idempotencyKey });
  } catch (error) {
    if (session.outcome.job === undefined && isRefusal(error)) await deleteUploads(session, references.uploadIds);
    throw error;
  }
}

interface Attempt<Params> {
  readonly params: Params;
  readonly idempotencyKey: string;
}

async function startOnly<Params extends object>(
  session: Session,
  plan: JobPlan<Params>,
  { params, idempotencyKey }: Attempt<Params>,
): Promise<void> {
  const created = await plan.create(params, { signal: session.signal, idempotencyKey });
  session.terminal.result({ ...created }, [
    ...describeJob(created.job, created),
    `Go on with: ${resumeCommand(created.job.id, {})}`,
  ]);
}

async function waitAndSave<Params extends object>(
  session: Session,
  plan: JobPlan<Params>,
  { params, idempotencyKey, flags }: Attempt<Params> & { flags: JobFlags },
): Promise<void> {
  const { terminal, signal } = session;
  let created: CreatedJob | undefined;
  const watch = watching(session, flags);
  try {
    const job = await plan.createAndWait(params, {
      ...watch.options,
      idempotencyKey,
      onCreated(accepted) {
        created = accepted;
        session.outcome.warnings = accepted.warnings;
        const { quoted_token_cost: quoted } = accepted;
        terminal.note(`Job ${accepted.job.id} accepted${quoted === undefined ? '' : `, ${quoted} tokens reserved`}.`);
        for (const warning of accepted.warnings) terminal.note(`Warning: ${warning}`);
        watch.began(accepted.job);
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
