import { Command } from 'commander';
import { GenError, JobError } from '../../errors/index.js';
import { fileJournal, type SavedOutput } from '../../node/index.js';
import type { JournaledCreate } from '../../rules/journal.js';
import { isCompleted, type Job } from '../../schemas/job.js';
import { readJournal } from '../../shared/journal.js';
import { doing, type OpenSession, withExamples } from '../action.js';
import { EXIT } from '../exit-codes.js';
import { addWaitFlags, type JobFlags } from '../flags.js';
import type { Session } from '../session.js';
import { saveTo, tryTarget } from '../target.js';
import { describeJob } from '../wait.js';
import { errorDocument, messageOf } from '../wording.js';

/** `gen-client jobs`: lists a journal. */
export function jobsCommand(open: OpenSession): Command {
  const command = new Command('jobs')
    .description(
      'List the jobs of a journal: what a program that uses fileJournal, or a batch, has created. Needs no key.',
    )
    .argument('<journal>', 'the file');
  withExamples(command, ['jobs jobs.jsonl', 'jobs out/prompts.journal.jsonl --json | jq ".jobs[].state"']);
  return doing(command, open, async ({ terminal }, [path = '']) => {
    const jobs = await readJournal(fileJournal(path));
    const width = Math.max(0, ...jobs.map(({ state }) => state.length));
    terminal.result(
      { jobs },
      jobs.length === 0 ? ['The journal is empty.'] : jobs.map((job) => createLine(job, width)),
    );
  });
}

const LONGEST_PROMPT = 60;

function createLine(
  { at, state, call, jobId, chargedTokens, quotedTokens, label, params }: JournaledCreate,
  width: number,
) {
  const tokens = chargedTokens ?? quotedTokens;
  const prompt = typeof params.prompt === 'string' ? params.prompt.slice(0, LONGEST_PROMPT) : undefined;
  const cost = tokens === undefined ? undefined : `${tokens} tokens`;
  return [at, state.padEnd(width), call, jobId, cost, label, prompt].filter((word) => word !== undefined).join('  ');
}

type Flags = Pick<JobFlags, 'out' | 'force' | 'timeout' | 'poll'>;

/** `gen-client resume`: ends what a journal has left open, and saves the files. */
export function resumeCommand(open: OpenSession): Command {
  const command = new Command('resume')
    .description(
      'Take up what a crash has interrupted: send creates whose outcome is unknown again under their own keys, wait for the jobs of the journal, and save their files.',
    )
    .argument('<journal>', 'the file');
  withExamples(addWaitFlags(command), ['resume jobs.jsonl --out videos/']);
  return doing<Flags>(command, open, async (session, [path = ''], flags) => {
    const out = flags.out ?? './';
    await tryTarget(session, { ...flags, out, mayExist: true }, 2);
    const journal = fileJournal(path);
    session.hint = 'Run the same command again: it goes on where it was and pays for no job twice.';
    try {
      await resume(session, { ...flags, out, client: session.client().withOptions({ journal }) });
    } finally {
      journal.close();
    }
  });
}

interface ResumedJob {
  readonly id: string;
  readonly job: Job;
  readonly file?: SavedOutput | undefined;
  readonly error?: Record<string, unknown>;
}

async function resume(
  session: Session,
  {
    client,
    timeout,
    poll,
    ...target
  }: Flags & { readonly client: ReturnType<Session['client']>; readonly out: string },
): Promise<void> {
  const { signal, terminal } = session;
  const jobs: ResumedJob[] = [];
  session.outcome = { jobs };
  const wait = {
    signal,
    ...(timeout !== undefined && { timeoutMs: timeout }),
    ...(poll !== undefined && { pollIntervalMs: poll }),
  };
  for await (const job of client.resume(undefined, wait)) {
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
      if (file?.existed) await client.jobs.storing({ name: 'resume', jobId: id }, async () => file);
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
