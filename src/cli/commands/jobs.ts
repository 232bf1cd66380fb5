import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { type FileStore, fileStore } from '../../adapters/node/index.js';
import { APIError, type GenClient, GenError, isCompleted, type Job, type UnfinishedCreate } from '../../index.js';
import { ledgerOf } from '../../ledger/ledger.js';
import { unfinishedCreatesIn } from '../../ledger/resume.js';
import { systemClock } from '../../runtime/clock.js';
import { addSaveFlags, addWaitFlags, type JobFlags, type OpenSession, runCommand, withExamples } from '../command.js';
import { EXIT, errorDocument, messageOf, rethrowStoreUsage, sentenceOf, UsageError } from '../errors.js';
import { describeJob, resumeLine, type WaitFlags, waitAndSave, waitOptions } from '../run-job.js';
import type { Session } from '../session.js';
import { checkOutputPath, saveTo } from '../target.js';
import { megabytes } from '../terminal.js';

export function jobCommand(open: OpenSession): Command {
  const command = new Command('job').description('Show a job.').argument('<job>', 'job ID');
  withExamples(command, ['job job_123', 'job job_123 --json | jq -r .job.status']);
  return runCommand(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const job = await client().jobs.get(id, { signal });
    terminal.result({ job }, describeJob(job, { hasSave: true }));
  });
}

export function downloadCommand(open: OpenSession): Command {
  const command = new Command('download')
    .description("Save a finished job's file in the working directory, or at --out.")
    .argument('<job>', 'job ID');
  withExamples(addSaveFlags(command), [
    'download job_123',
    'download job_123 --out fox.mp4 --force',
    'download job_123 --out - | ffplay -',
  ]);
  return runCommand<Pick<JobFlags, 'out' | 'force'>>(command, open, async (session, [id = ''], flags) => {
    checkOutputPath(session, { ...flags, mayExist: true });
    const job = await session.client().jobs.get(id, { signal: session.signal });
    const file = await saveTo(session, job, flags);
    session.terminal.result({ job, file }, file ? [`${file.path}  ${megabytes(file.sizeBytes)}`] : []);
  });
}

export function waitCommand(open: OpenSession): Command {
  const command = new Command('wait')
    .description('Wait until jobs have ended. Exits with 1 if one did not complete.')
    .argument('<job...>', 'job IDs');
  withExamples(addWaitFlags(command), [
    'wait job_123 --out fox.mp4',
    'wait job_1 job_2 job_3 --out videos/ --timeout 1h',
  ]);
  return runCommand<WaitFlags>(command, open, async (session, ids, flags) => {
    checkOutputPath(session, { ...flags, mayExist: true }, ids.length);
    const [id = '', ...others] = ids;
    const text = others.length === 0 ? `Job ${id} continues. Wait for it` : 'The jobs continue. Wait for them';
    session.next = { text, command: resumeLine(ids, flags) };
    const client = session.client();
    if (others.length === 0) {
      await waitAndSave(session, flags, (options) => client.waitForJob(id, options));
      return;
    }
    await saveAll(session, client.waitForJobs(ids, waitOptions(session, flags)), { client, flags });
  });
}

/** Saves the file of each job. Continues after a failure, and throws at the end. */
async function saveAll(
  session: Session,
  finalJobs: AsyncIterable<Job>,
  { client, flags }: { readonly client: GenClient; readonly flags: WaitFlags },
): Promise<void> {
  const { signal, terminal, next: resumeStep } = session;
  const jobs: Record<string, unknown>[] = [];
  const failures: { readonly id: string | undefined; readonly error: unknown }[] = [];
  session.outcome = { jobs };
  const fail = (error: unknown, job?: Job) => {
    signal.throwIfAborted();
    const next = job && session.next;
    const id = job?.id ?? jobIdOf(error);
    failures.push({ id, error });
    jobs.push({ id, job, error: errorDocument(error), next: next?.command });
    terminal.note(`${id}: ${messageOf(error)}`);
    if (next) terminal.note(sentenceOf(next));
  };
  try {
    for await (const job of finalJobs) {
      const isSaved = isCompleted(job) && flags.out !== undefined;
      if (!isCompleted(job)) session.exitCode = EXIT.failed;
      try {
        const file = isSaved ? await saveTo(session, job, flags, client) : undefined;
        jobs.push({ id: job.id, job, file });
        terminal.print(describeJob(job, { file, hasSave: !isSaved }));
      } catch (error) {
        terminal.print(describeJob(job));
        fail(error, job);
      }
      session.next = resumeStep;
    }
  } catch (error) {
    for (const reason of error instanceof AggregateError ? error.errors : [error]) fail(reason);
  }
  if (failures.length > 0) {
    session.next = undefined;
    const ids = failures.map(({ id }) => id).join(', ');
    throw new GenError(`Some jobs did not finish: ${ids}.`, { cause: failures[0]?.error });
  }
  terminal.result({ jobs }, jobs.length === 0 ? [NOTHING_TO_RESUME] : []);
}

function jobIdOf(error: unknown): string | undefined {
  if (APIError.isInstance(error)) return error.url?.split('/').at(-1);
  return GenError.isInstance(error) && 'jobId' in error ? String(error.jobId) : undefined;
}

const NOTHING_TO_RESUME = 'Nothing to resume.';

interface StoreFlags extends WaitFlags {
  readonly account?: string;
}

export function jobsCommand(open: OpenSession): Command {
  const command = new Command('jobs')
    .description(
      'List the unfinished creates in the store of a program that uses fileStore, or of a batch. Needs no key.',
    )
    .argument('<file>', 'store file');
  withExamples(command, ['jobs gen.store', 'jobs out/prompts.store --json | jq ".jobs[].phase"']);
  return runCommand(command, open, async (session, [path = '']) => {
    const jobs: UnfinishedCreate[] = [];
    const ledger = ledgerOf(await existingStore(path), systemClock);
    for await (const create of unfinishedCreatesIn(ledger)) jobs.push(create);
    const width = Math.max(0, ...jobs.map(({ phase }) => phase.length));
    session.terminal.result(
      { jobs },
      jobs.length === 0 ? [NOTHING_TO_RESUME] : jobs.map((job) => createLine(job, width)),
    );
  });
}

/** Opens a store. Throws a UsageError if the file is missing or isn't a store. */
async function existingStore(path: string): Promise<FileStore> {
  if (!existsSync(path)) throw new UsageError(`"${path}" does not exist. Pass the path of a store.`);
  const store = fileStore(path);
  await store.read('jobs', []).catch(rethrowStoreUsage);
  return store;
}

const MAX_PROMPT = 60;

function createLine(
  { at, phase, call, jobId, status, label, params, idempotencyKey }: UnfinishedCreate,
  width: number,
) {
  const prompt = typeof params?.prompt === 'string' ? params.prompt.slice(0, MAX_PROMPT) : undefined;
  const columns = [at, phase.padEnd(width), call, jobId ?? idempotencyKey, status, label, prompt];
  return columns.filter((word) => word !== undefined).join('  ');
}

export function resumeCommand(open: OpenSession): Command {
  const command = new Command('resume')
    .description(
      'Resume after a crash: send creates with an unknown outcome again under their own keys, wait for the jobs, and save their files.',
    )
    .argument('<file>', 'store file')
    .option('--account <name>', 'the account option of the program (default: the account of GEN_API_KEY)');
  withExamples(addWaitFlags(command), ['resume gen.store --out videos/']);
  return runCommand<StoreFlags>(command, open, async (session, [path = ''], flags) => {
    const { out = './', account } = flags;
    const store = await existingStore(path);
    checkOutputPath(session, { ...flags, out, mayExist: true }, 2);
    session.next = { text: 'Run the same command again to resume. No job is charged twice.' };
    const client = session.client({ store, account });
    try {
      const results = client.resume(waitOptions(session, flags));
      await saveAll(session, jobsOf(results), { client, flags: { ...flags, out } });
    } finally {
      await store.close();
    }
  });
}

async function* jobsOf(results: AsyncIterable<{ readonly job: Job }>): AsyncGenerator<Job> {
  for await (const { job } of results) yield job;
}
