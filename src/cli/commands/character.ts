import { Command } from 'commander';
import { extra } from '../../schemas/envelope.js';
import { doing, type OpenSession, parseKey, withExamples } from '../command.js';
import { paramsOf, sendingFiles } from '../run-job.js';
import { characterImageCommand } from './create.js';

export function characterCommand(open: OpenSession): Command {
  const command = new Command('character').description('Registered characters, and one-off character images.');
  for (const make of [registerCommand, characterImageCommand, listCommand, getCommand, deleteCommand]) {
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
    const given = paramsOf([[{ uploads: 'upload_id' }, image]]);
    const { upload_id = image } = given.fields;
    const { idempotencyKey } = flags;
    const { signal } = session;
    const character = await sendingFiles(session, given, (onUploadProgress) =>
      session
        .client()
        .characters.register({ name, upload_id: upload_id as string }, { signal, idempotencyKey, onUploadProgress }),
    );
    session.terminal.result({ character }, [
      `${character.character_id}  ${name}`,
      'It may be under review for a while; creates that name it wait for that.',
    ]);
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
