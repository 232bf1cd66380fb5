// Uploads, characters, and models.
import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { fromPath } from '../../adapters/node/index.js';
import { extra, modelCapabilities, type Upload, type UploadOptions } from '../../index.js';
import { type OpenSession, parseKey, runCommand, withExamples } from '../command.js';
import { UsageError } from '../errors.js';
import { paramsOf, referenceIn, withUploadProgress } from '../run-job.js';
import { bytesProgress } from '../terminal.js';
import { characterImageCommand } from './create.js';

export function uploadCommand(open: OpenSession): Command {
  const command = new Command('upload')
    .description('Upload files for use as references or sources; prints their upload IDs.')
    .argument('<file...>', 'files on this machine')
    .option('--mime-type <type>', 'media type, if neither the name nor the content reveals it')
    .addOption(new Option('--type <type>', 'intended use').choices(['IMAGE', 'VIDEO', 'AUDIO']))
    .option('--name <name>', "name for the service (default: the file's)");
  withExamples(command, [
    'upload fox.png',
    'upload clip.bin --mime-type video/mp4',
    'upload a.png b.png --json | jq -r ".uploads[].upload_id"',
  ]);
  return runCommand<{ mimeType?: string; type?: UploadOptions['uploadType']; name?: string }>(
    command,
    open,
    async (session, files, flags) => {
      for (const file of files) {
        if (referenceIn(file).kind !== 'file')
          throw new UsageError(`"${file}" is not a file on this machine. Pass the path of a file.`);
      }
      const uploads: (Upload & { readonly file: string })[] = [];
      session.outcome = { uploads };
      const { mimeType, type: uploadType, name: filename } = flags;
      const options = { mimeType, uploadType, filename, signal: session.signal };
      for (const file of files) {
        const show = session.terminal.progress(`Uploading ${basename(file)}`);
        const onProgress: UploadOptions['onProgress'] = ({ sentBytes, totalBytes }) =>
          show(bytesProgress(sentBytes, totalBytes));
        const pendingUpload = session.client().uploads.upload(fromPath(file), { ...options, onProgress });
        const upload = await pendingUpload.catch((error: unknown) => {
          session.terminal.note(`"${file}" was not uploaded.`);
          throw error;
        });
        uploads.push({ file, ...upload });
        session.terminal.print([`${upload.upload_id}  ${file}`]);
        session.next = { text: `Uploaded so far: ${uploads.map(({ upload_id }) => upload_id).join(', ')}` };
      }
      if (session.terminal.isJson) session.terminal.result({ uploads }, []);
    },
  );
}

export function characterCommand(open: OpenSession): Command {
  const command = new Command('character').description('Registered characters, and one-off character images.');
  for (const create of [registerCommand, characterImageCommand, listCommand, getCommand, deleteCommand]) {
    command.addCommand(create(open));
  }
  return withExamples(command, [
    'character register Mira mira.png',
    'video "Mira waves" --character <character_id> --out mira.mp4',
    'character create Mira "red hair, green coat, ink drawing" --out mira.png',
  ]);
}

function registerCommand(open: OpenSession): Command {
  const command = new Command('register')
    .description('Register a reusable character from an image of at least 300 px width.')
    .argument('<name>', "the character's name")
    .argument('<image>', 'file or upload ID')
    .option('--idempotency-key <key>', 'the same key never registers a second character', parseKey);
  withExamples(command, ['character register Mira mira.png']);
  return runCommand<{ idempotencyKey?: string }>(command, open, async (session, [name = '', image = ''], flags) => {
    const params = paramsOf([[{ uploads: 'upload_id' }, image]]);
    const { upload_id = image } = params.fields;
    const { idempotencyKey } = flags;
    const { signal } = session;
    const character = await withUploadProgress(session, params, (onUploadProgress) =>
      session
        .client()
        .characters.register({ name, upload_id: upload_id as string }, { signal, idempotencyKey, onUploadProgress }),
    );
    session.terminal.result({ character }, [
      `${character.character_id}  ${name}`,
      'The character may be under review. Creates that use it wait for the review.',
    ]);
  });
}

function listCommand(open: OpenSession): Command {
  const command = new Command('list').description('List the characters of the account.');
  withExamples(command, ['character list', 'character list --json | jq ".characters[].character_id"']);
  return runCommand(command, open, async ({ client, terminal, signal }) => {
    const list = await client().characters.list({ signal });
    terminal.result(list, list.characters.map(characterLine));
  });
}

function getCommand(open: OpenSession): Command {
  const command = new Command('get').description('Show one character.').argument('<id>', 'ID or slug');
  withExamples(command, ['character get <character_id>']);
  return runCommand(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const character = await client().characters.get(id, { signal });
    terminal.result({ character }, [characterLine(extra(character))]);
  });
}

function deleteCommand(open: OpenSession): Command {
  const command = new Command('delete').description('Delete a character.').argument('<id>', 'ID or slug');
  withExamples(command, ['character delete <character_id>']);
  return runCommand(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const response = await client().characters.delete(id, { signal });
    terminal.result({ deleted: id, response }, [`${id}  deleted`]);
  });
}

/** Returns all plain values in one line, because the service doesn't document the fields. */
function characterLine(record: Readonly<Record<string, unknown>>): string {
  return Object.values(record)
    .filter((value) => typeof value !== 'object')
    .join('  ');
}

export function modelsCommand(open: OpenSession): Command {
  const command = new Command('models').description("List the service's models and their capabilities. Needs no key.");
  withExamples(command, ['models', 'models --json | jq ".models[0]"']);
  return runCommand(command, open, async ({ client, terminal, signal }) => {
    const list = await client().models.list({ signal });
    const rows = list.models.map(describeModel);
    const width = Math.max(0, ...rows.map(([alias]) => alias.length));
    terminal.result(
      list,
      rows.map(([alias, text]) => `${alias.padEnd(width)}  ${text}`),
    );
  });
}

/** Returns the alias, with the catalog's lists if the model is known, otherwise with those of the record. */
function describeModel(record: Record<string, unknown>): [alias: string, text: string] {
  const alias = aliasOf(record);
  const row = modelCapabilities(alias);
  // Example ratios aren't limits.
  const fields = Object.entries(row ?? record).filter(([field]) => field !== 'exampleRatios');
  const lists = fields.flatMap(([field, value]) =>
    Array.isArray(value) ? [`${LABELS[field] ?? field} ${value.join(' ')}`] : [],
  );
  return [alias, [row?.kind ?? record.kind, ...lists].filter(Boolean).join('  ')];
}

const LABELS: Readonly<Record<string, string>> = { durations: 'seconds', aspectRatios: 'ratios', resolutions: 'sizes' };

function aliasOf({ alias, id, model, name }: Record<string, unknown>): string {
  return String([alias, id, model, name].find((value) => typeof value === 'string') ?? '?');
}
