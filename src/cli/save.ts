import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type SavedOutput, saveOutput } from '../node/index.js';
import type { Job } from '../schemas/job.js';
import { UsageError } from './exit-codes.js';
import type { JobFlags } from './flags.js';
import type { Session } from './session.js';

type SaveFlags = Pick<JobFlags, 'out' | 'force'>;

/** Refuses a target that cannot take the file, before a job is paid for. */
export function checkTarget({ out, force }: SaveFlags): void {
  if (out === undefined) return;
  const stats = statSync(out, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return;
  if (stats && !force) throw new UsageError(`--out: "${out}" is there already. Pass --force to replace it.`);
  const folder = dirname(resolve(out));
  if (!existsSync(folder)) throw new UsageError(`--out: the directory "${folder}" is not there. Create it first.`);
}

/** Saves a job's file, showing how far it has come. */
export async function saveTo(session: Session, job: Job, { out = '.', force }: SaveFlags): Promise<SavedOutput> {
  const progress = session.terminal.progress(`Saving ${job.id}`);
  try {
    return await saveOutput(session.client(), job, out, {
      signal: session.signal,
      overwrite: force === true,
      onProgress: ({ receivedBytes, totalBytes }) => progress.bytes(receivedBytes, totalBytes),
    });
  } finally {
    progress.stop();
  }
}
