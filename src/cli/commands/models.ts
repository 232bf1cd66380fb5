import { Command } from 'commander';
import { modelCapabilities } from '../../catalog.js';
import type { Fields } from '../../schemas/envelope.js';
import { doing, type OpenSession, withExamples } from '../command.js';

export function modelsCommand(open: OpenSession): Command {
  const command = new Command('models').description("List the service's models with what they can do. Needs no key.");
  withExamples(command, ['models', 'models --json | jq ".models[0]"']);
  return doing(command, open, async ({ client, terminal, signal }) => {
    const list = await client().models.list({ signal });
    const rows = list.models.map(describeModel);
    const width = Math.max(0, ...rows.map(([alias]) => alias.length));
    terminal.result(
      list,
      rows.map(([alias, text]) => `${alias.padEnd(width)}  ${text}`),
    );
  });
}

/** The alias, and what the catalog says of it, else the record's own lists. */
function describeModel(record: Fields): [alias: string, text: string] {
  const alias = aliasOf(record);
  const row = modelCapabilities(alias);
  // The examples of ratios bind nobody.
  const known = Object.entries(row ?? record).filter(([field]) => field !== 'exampleRatios');
  const lists = known.flatMap(([field, value]) =>
    Array.isArray(value) ? [`${LABELS[field] ?? field} ${value.join(' ')}`] : [],
  );
  return [alias, [row?.kind ?? record.kind, ...lists].filter(Boolean).join('  ')];
}

const LABELS: Readonly<Record<string, string>> = { durations: 'seconds', aspectRatios: 'ratios', resolutions: 'sizes' };

function aliasOf({ alias, id, model, name }: Fields): string {
  return String([alias, id, model, name].find((value) => typeof value === 'string') ?? '?');
}
