import { Command } from 'commander';
import { fromPath } from '../../node/index.js';
import { checkCharacter } from '../../rules/preflight.js';
import { extra } from '../../schemas/envelope.js';
import { addJobFlags, collect, doing, type JobFlags, type OpenSession, parseKey, withExamples } from '../command.js';
import { UsageError } from '../errors.js';
import { mentionOf, namingFiles, uploadProgress } from '../references.js';
import { runJobCommand } from '../run-job.js';

interface CreateFlags extends JobFlags {
  readonly ratio?: string;
  readonly resolution?: string;
  readonly image?: readonly string[];
}

/** `gen-client character`. */
export function characterCommand(open: OpenSession): Command {
  const command = new Command('character').description('Registered characters, and one-off character images.');
  for (const make of [registerCommand, createCommand, listCommand, getCommand, deleteCommand]) {
    command.addCommand(make(open));
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
    .argument('<image>', 'file or upload id')
    .option('--idempotency-key <key>', 'the same key again registers nothing new', parseKey);
  withExamples(command, ['character register Mira mira.png']);
  return doing<{ idempotencyKey?: string }>(command, open, async (session, [name = '', image = ''], flags) => {
    const mention = mentionOf(image);
    if (mention.kind === 'url')
      throw new UsageError('A character is registered from a file or an upload id, not a URL.');
    const slots = [{ mentions: [mention], urls: '', uploads: 'upload_id', isSingle: true }];
    const uploads = uploadProgress(session, slots);
    const { signal } = session;
    const { idempotencyKey } = flags;
    const { onUploadProgress } = uploads;
    const params = { name, upload_id: mention.kind === 'file' ? fromPath(image) : image };
    const options = { signal, idempotencyKey, onUploadProgress };
    const character = await Promise.resolve(session.client().characters.register(params, options))
      .catch((error: unknown) => {
        throw namingFiles(error, slots);
      })
      .finally(() => uploads.stop());
    session.terminal.result({ character }, [
      `${character.character_id}  ${name}`,
      'It may be under review for a while; creates that name it wait for that.',
    ]);
  });
}

function createCommand(open: OpenSession): Command {
  const command = new Command('create')
    .description('Make a one-off character image.')
    .argument('<name>', "the character's name")
    .argument('<prompt>', 'hairstyle, wardrobe, pose, style, palette; no real person')
    .option('-r, --ratio <ratio>', 'aspect ratio')
    .option('--resolution <name>', 'standard or high')
    .option('-i, --image <source>', 'reference image: file or upload id; again for more', collect);
  withExamples(addJobFlags(command), ['character create Mira "red hair, green coat, ink drawing" --out mira.png']);
  return doing<CreateFlags>(command, open, async (session, [name = '', prompt = ''], flags) => {
    const { characters } = session.client();
    const mentions = (flags.image ?? []).map(mentionOf);
    if (mentions.some(({ kind }) => kind === 'url'))
      throw new UsageError('--image: give a file or an upload id, not a URL.');
    await runJobCommand(
      session,
      {
        params: { aspect_ratio: flags.ratio, resolution: flags.resolution },
        references: [{ mentions, urls: '', uploads: 'reference_upload_ids' }],
        check: (params) => checkCharacter({ ...params, name, prompt }),
        create: (params, options) => characters.create({ ...params, name, prompt }, options),
        createAndWait: (params, options) => characters.createAndWait({ ...params, name, prompt }, options),
      },
      flags,
    );
  });
}

function listCommand(open: OpenSession): Command {
  const command = new Command('list').description('List the characters of the account.');
  withExamples(command, ['character list', 'character list --json | jq ".characters[].character_id"']);
  return doing(command, open, async ({ client, terminal, signal }) => {
    const list = await client().characters.list({ signal });
    terminal.result(list, list.characters.map(characterLine));
  });
}

function getCommand(open: OpenSession): Command {
  const command = new Command('get').description('Show one character.').argument('<id>', 'id or slug');
  withExamples(command, ['character get <character_id>']);
  return doing(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const character = await client().characters.get(id, { signal });
    terminal.result({ character }, [characterLine(extra(character))]);
  });
}

function deleteCommand(open: OpenSession): Command {
  const command = new Command('delete').description('Delete a character.').argument('<id>', 'id or slug');
  withExamples(command, ['character delete <character_id>']);
  return doing(command, open, async ({ client, terminal, signal }, [id = '']) => {
    const answer = await client().characters.delete(id, { signal });
    terminal.result({ deleted: id, answer }, [`${id}  deleted`]);
  });
}

/** The service's fields are not documented: those that are plain values are shown as they come. */
function characterLine(record: Readonly<Record<string, unknown>>): string {
  return Object.values(record)
    .filter((value) => typeof value !== 'object')
    .join('  ');
}
