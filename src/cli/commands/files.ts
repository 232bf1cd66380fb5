import { Command } from 'commander';
import { doing, type OpenSession, withExamples } from '../action.js';
import { UsageError } from '../exit-codes.js';
import { addSaveFlags, type JobFlags } from '../flags.js';
import { megabytes } from '../progress.js';
import { mentionOf, uploadFile } from '../references.js';
import { checkTarget, saveTo } from '../save.js';

/** `gen-client upload` (spec: Uploads). */
export function uploadCommand(open: OpenSession): Command {
  const command = new Command('upload')
    .description('Upload files for use as references or sources; prints their upload ids.')
    .argument('<file...>', 'files on this machine');
  withExamples(command, ['upload fox.png', 'upload a.png b.png --json | jq -r ".uploads[].upload_id"']);
  return doing(command, open, async (session, files) => {
    for (const file of files) {
      if (mentionOf(file).kind !== 'file') throw new UsageError(`"${file}" is no file on this machine.`);
    }
    const uploads = [];
    for (const file of files) {
      uploads.push({ file, ...(await uploadFile(session, file)) });
      session.hint = `Uploaded so far: ${uploads.map(({ upload_id }) => upload_id).join(', ')}`;
    }
    session.terminal.result(
      { uploads },
      uploads.map(({ file, upload_id }) => `${upload_id}  ${file}`),
    );
  });
}

/** `gen-client download` (spec: GET /v1/jobs/{job_id}/output). */
export function downloadCommand(open: OpenSession): Command {
  const command = new Command('download')
    .description("Save a finished job's file, into the working directory unless --out says otherwise.")
    .argument('<job>', 'job id');
  withExamples(addSaveFlags(command), ['download job_123', 'download job_123 --out fox.mp4 --force']);
  return doing<Pick<JobFlags, 'out' | 'force'>>(command, open, async (session, [id = ''], flags) => {
    checkTarget(flags);
    session.hint = 'No file was written.';
    const job = await session.client().jobs.get(id, { signal: session.signal });
    const file = await saveTo(session, job, flags);
    session.terminal.result({ job, file }, [`${file.path}  ${megabytes(file.sizeBytes)}`]);
  });
}
