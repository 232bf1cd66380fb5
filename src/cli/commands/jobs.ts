import { Command } from 'commander';
import { doing, type OpenSession, withExamples } from '../action.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { addWaitFlags, type JobFlags } from '../flags.js';
import { checkTarget, saveTo } from '../save.js';
import type { Session } from '../session.js';
import { describeJob } from '../show-job.js';
import { resumeCommand, watching } from '../wait.js';

type Flags = Pick<JobFlags, 'out' | 'force' | 'timeout' | 'poll'>;

/** `gen-client job` (spec: GET /v1/jobs/{job_id}). */
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
  return doing<Flags>(command, open, async (session, ids, flags) => {
    if (ids.length > 1 && flags.out !== undefined) requireDirectory(flags.out);
    checkTarget(flags);
    session.hint = `Jobs go on without this command. Wait for them with: ${ids.map((id) => resumeCommand(id, flags)).join('; ')}`;
    if (ids.length === 1) await waitForOne(session, ids[0] ?? '', flags);
    else await waitForMany(session, ids, flags);
  });
}

async function waitForOne(session: Session, id: string, flags: Flags): Promise<void> {
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

async function waitForMany(session: Session, ids: readonly string[], flags: Flags): Promise<void> {
  const { signal, timeoutMs, pollIntervalMs } = watching(session, flags).options;
  const results: object[] = [];
  const lines: string[] = [];
  for await (const job of session.client().waitForJobs(ids, { signal, timeoutMs, pollIntervalMs })) {
    session.terminal.note(`${job.id}: ${job.status}`);
    if (job.status !== 'completed') session.exitCode = EXIT.failed;
    const file = job.status === 'completed' && flags.out !== undefined ? await saveTo(session, job, flags) : undefined;
    results.push({ job, file });
    lines.push(...describeJob(job, { file }));
  }
  session.terminal.result({ jobs: results }, lines);
}

function requireDirectory(out: string): void {
  if (!out.endsWith('/') && !out.endsWith('.')) {
    throw new UsageError(`--out: give a directory for several jobs, such as "${out}/".`);
  }
}
