import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { fromPath } from '../../adapters/node/index.js';
import type { UploadType } from '../../schemas/media-type.js';
import type { Upload } from '../../schemas/upload.js';
import type { FileOptions } from '../../uploading/upload-options.js';
import { addSaveFlags, doing, type JobFlags, type OpenSession, withExamples } from '../command.js';
import { UsageError } from '../errors.js';
import { referenceIn } from '../run-job.js';
import type { Session } from '../session.js';
import { saveTo, tryTarget } from '../target.js';
import { bytesShown, megabytes } from '../terminal.js';

export function uploadCommand(open: OpenSession): Command {
  const command = new Command('upload')
    .description('Upload files for use as references or sources; prints their upload ids.')
    .argument('<file...>', 'files on this machine')
    .option('--mime-type <type>', 'media type, where neither name nor content tells it')
    .addOption(new Option('--type <type>', 'what it is used as').choices(['IMAGE', 'VIDEO', 'AUDIO']))
    .option('--name <name>', "name for the service (default: the file's)");
  withExamples(command, [
    'upload fox.png',
    'upload clip.bin --mime-type video/mp4',
    'upload a.png b.png --json | jq -r ".uploads[].upload_id"',
  ]);
  return doing<{ mimeType?: string; type?: UploadType; name?: string }>(
    command,
    open,
    async (session, files, flags) => {
      for (const file of files) {
        if (referenceIn(file).kind !== 'file') throw new UsageError(`"${file}" is not a file on this machine.`);
      }
      const uploads: (Upload & { readonly file: string })[] = [];
      session.outcome = { uploads };
      const options = { mimeType: flags.mimeType, uploadType: flags.type, filename: flags.name };
      for (const file of files) {
        const upload = await uploadWithProgress(session, file, options).catch((error: unknown) => {
          session.terminal.note(`"${file}" was not uploaded.`);
          throw error;
        });
        uploads.push({ file, ...upload });
        session.terminal.print([`${upload.upload_id}  ${file}`]);
        session.next = { what: `Uploaded so far: ${uploads.map(({ upload_id }) => upload_id).join(', ')}` };
      }
      if (session.terminal.isJson) session.terminal.result({ uploads }, []);
    },
  );
}

async function uploadWithProgress(session: Session, path: string, options: FileOptions): Promise<Upload> {
  const progress = session.terminal.progress(`Uploading ${basename(path)}`);
  try {
    return await session.client().uploads.upload(fromPath(path), {
      ...options,
      signal: session.signal,
      onProgress: ({ sentBytes, totalBytes }) => progress.show(...bytesShown(sentBytes, totalBytes)),
    });
  } finally {
    progress.stop();
  }
}

export function downloadCommand(open: OpenSession): Command {
  const command = new Command('download')
    .description("Save a finished job's file, into the working directory unless --out says otherwise.")
    .argument('<job>', 'job id');
  withExamples(addSaveFlags(command), [
    'download job_123',
    'download job_123 --out fox.mp4 --force',
    'download job_123 --out - | ffplay -',
  ]);
  return doing<Pick<JobFlags, 'out' | 'force'>>(command, open, async (session, [id = ''], flags) => {
    await tryTarget(session, { ...flags, mayExist: true });
    const job = await session.client().jobs.get(id, { signal: session.signal });
    const file = await saveTo(session, job, flags);
    session.terminal.result({ job, file }, file ? [`${file.path}  ${megabytes(file.sizeBytes)}`] : []);
  });
}
