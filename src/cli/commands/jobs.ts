import { Command } from 'commander';
import { readFileStore } from '../../adapters/node/file-store.js';
import { fileStore, type SavedOutput } from '../../adapters/node/index.js';
import { type OpenCreate, openCreatesIn } from '../../client/resume.js';
import { GenError, JobError } from '../../errors/index.js';
import { ledgerOf } from '../../ledger/ledger.js';
import { systemClock } from '../../runtime/clock.js';
import { isCompleted, type Job } from '../../schemas/job.js';
import { addWaitFlags, doing, type JobFlags, type OpenSession, withExamples } from '../command.js';
import { EXIT, errorDocument, messageOf, UsageError } from '../errors.js';
import { describeJob, resumeLine, watching } from '../run-job.js';
import type { Session } from '../session.js';
import { saveTo, tryTarget } from '../target.js';

type JobsFlags = Pick<JobFlags, 'out' | 'force' | 'timeout' | 'poll'>;

/** `gen-client job`. */
export function jobCommand(open: OpenSession): Command {
  const command = new Command('job').description('Show a job as it stands.').argument('<job>', 'job id');
  withExamples(command, ['job job_123', 'job job_123 --json | jq -r .job.status']);
  return doing(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const job = await client().jobs.get(id, { signal });
    terminal.result({ job }, describeJob(job, { hasSave: true }));
  });
}

/** `gen-client wait`: takes up a wait, from any machine that has the key. */
export function waitCommand(open: OpenSession): Command {
  const command = new Command('wait')
    .description('Wait until jobs have ended. Fails with 1 when one did not complete.')
    .argument('<job...>', 'job ids');
  withExamples(addWaitFlags(command), [
    'wait job_123 --out fox.mp4',
    'wait job_1 job_2 job_3 --out videos/ --timeout 1h',
  ]);
  return doing<JobsFlags>(command, open, async (session, ids, flags) => {
    await tryTarget(session, { ...flags, mayExist: true }, ids.length);
    session.hint = `Jobs go on without this command. Wait for them with: ${ids.map((id) => resumeLine(id, flags)).join('; ')}`;
    if (ids.length === 1) await waitForOne(session, ids[0] ?? '', flags);
    else await waitForMany(session, ids, flags);
  });
}

async function waitForOne(session: Session, id: string, flags: JobsFlags): Promise<void> {
  const watch = watching(session, flags);
  try {
    const job = await session.client().waitForJob(id, watch.options);
    watch.stop();
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    session.terminal.result({ job, file }, describeJob(job, { file, hasSave: true }));
  } finally {
    watch.stop();
  }
}

/** What became of one of several jobs; `next` is the command that goes on. */
interface JobOutcome {
  readonly id: string;
  readonly job?: Job;
  readonly file?: SavedOutput | undefined;
  readonly error?: Record<string, unknown>;
  readonly next?: string | undefined;
}

/** Waits for all and saves each file as its job ends. One that fails stops none of the others. */
async function waitForMany(session: Session, ids: readonly string[], flags: JobsFlags): Promise<void> {
  const { signal, timeoutMs, pollIntervalMs } = watching(session, flags).options;
  const jobs: JobOutcome[] = [];
  const failures: unknown[] = [];
  session.outcome = { jobs };
  // One file at a time: two bars cannot share a line.
  let saving: Promise<unknown> = Promise.resolve();
  const fail = (outcome: JobOutcome, error: unknown) => {
    if (signal?.aborted) return;
    const next = outcome.job ? session.next : undefined;
    failures.push(error);
    jobs.push({ ...outcome, error: errorDocument(error), next: next?.command });
    session.terminal.note(`${outcome.id}: ${messageOf(error)}`);
    if (next) session.terminal.note(`${next.what} with: ${next.command}`);
  };
  const end = async (job: Job) => {
    const { id, status } = job;
    if (status !== 'completed') session.exitCode = EXIT.failed;
    try {
      const file = status === 'completed' && flags.out !== undefined ? await saveTo(session, job, flags) : undefined;
      jobs.push({ id, job, file });
      session.terminal.print(describeJob(job, { file, hasSave: flags.out === undefined }));
    } catch (error) {
      session.terminal.print(describeJob(job));
      fail({ id, job }, error);
    }
  };
  const waits = ids.map(async (id) => {
    try {
      const job = await session.client().waitForJob(id, { signal, timeoutMs, pollIntervalMs, throwOnFailure: false });
      saving = saving.then(() => end(job));
    } catch (error) {
      fail({ id }, error);
    }
  });
  await Promise.all(waits);
  await saving;
  signal?.throwIfAborted();
  session.next = undefined;
  if (failures.length > 0) {
    const named = jobs.filter(({ error }) => error !== undefined).map(({ id }) => id);
    throw new GenError(`Not all jobs came to a result: ${named.join(', ')}.`, { cause: failures[0] });
  }
  session.terminal.result({ jobs }, []);
}

/** `gen-client jobs`: lists the creates of a store that are not done. */
export function jobsCommand(open: OpenSession): Command {
  const command = new Command('jobs')
    .description(
      'List the creates of a store that are not done: of a program that uses fileStore, or of a batch. Needs no key.',
    )
    .argument('<file>', 'the file of the store');
  withExamples(command, ['jobs gen.store', 'jobs out/prompts.store --json | jq ".jobs[].phase"']);
  return doing(command, open, async ({ terminal }, [path = '']) => {
    const jobs: OpenCreate[] = [];
    for await (const create of openCreatesIn(ledgerOf(existingStore(path), systemClock))) jobs.push(create);
    const width = Math.max(0, ...jobs.map(({ phase }) => phase.length));
    terminal.result(
      { jobs },
      jobs.length === 0 ? ['Nothing is left to do.'] : jobs.map((job) => createLine(job, width)),
    );
  });
}

/** A store that is there. A file that is missing, or something else, is a mistake in the command. */
function existingStore(path: string) {
  try {
    return readFileStore(path);
  } catch (cause) {
    throw new UsageError(messageOf(cause), { cause });
  }
}

const LONGEST_PROMPT = 60;

function createLine({ at, phase, call, jobId, status, label, params, idempotencyKey }: OpenCreate, width: number) {
  const prompt = typeof params?.prompt === 'string' ? params.prompt.slice(0, LONGEST_PROMPT) : undefined;
  const words = [at, phase.padEnd(width), call, jobId ?? idempotencyKey, status, label, prompt];
  return words.filter((word) => word !== undefined).join('  ');
}

/** `gen-client resume`: ends what a store has open, and saves the files. */
export function resumeCommand(open: OpenSession): Command {
  const command = new Command('resume')
    .description(
      'Take up what a crash has interrupted: send creates whose outcome is unknown again under their own keys, wait for the jobs, and save their files.',
    )
    .argument('<file>', 'the file of the store');
  withExamples(addWaitFlags(command), ['resume gen.store --out videos/']);
  return doing<JobsFlags>(command, open, async (session, [path = ''], flags) => {
    const out = flags.out ?? './';
    existingStore(path);
    await tryTarget(session, { ...flags, out, mayExist: true }, 2);
    const store = fileStore(path);
    session.hint = 'Run the same command again: it goes on where it was and pays for no job twice.';
    try {
      await resume(session, { ...flags, out, client: session.client().withOptions({ store }) });
    } finally {
      await store.close();
    }
  });
}

async function resume(
  session: Session,
  {
    client,
    timeout,
    poll,
    ...target
  }: JobsFlags & { readonly client: ReturnType<Session['client']>; readonly out: string },
): Promise<void> {
  const { signal, terminal } = session;
  const jobs: JobOutcome[] = [];
  session.outcome = { jobs };
  for await (const resumed of client.resume({ signal, timeoutMs: timeout, pollIntervalMs: poll })) {
    const { job } = resumed;
    const { id } = job;
    if (!isCompleted(job)) {
      session.exitCode = EXIT.failed;
      jobs.push({ id, job });
      terminal.print(describeJob(job));
      continue;
    }
    try {
      const file = await saveTo({ ...session, client: () => client }, job, target);
      // A file that is there already is not saved again, so that its storage has to be noted here.
      if (file?.existed) await client.markStored(job);
      jobs.push({ id, job, file });
      terminal.print(describeJob(job, { file }));
    } catch (error) {
      signal.throwIfAborted();
      if (JobError.isInstance(error) || !GenError.isInstance(error)) throw error;
      session.exitCode = EXIT.failed;
      jobs.push({ id, job, error: errorDocument(error) });
      terminal.note(`${id}: ${messageOf(error)}`);
    }
  }
  terminal.result({ jobs }, jobs.length === 0 ? ['Nothing is left to do.'] : []);
}
