import { Command } from 'commander';
import { modelCapabilities } from '../../catalog.js';
import { doing, type OpenSession, withExamples } from '../command.js';

/** Where a record may name its model: the shape of the answer is not documented. */
const NAME_FIELDS = ['alias', 'id', 'model', 'name'];

/** `gen-client models`. */
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
function describeModel(record: Readonly<Record<string, unknown>>): [alias: string, text: string] {
  const name = NAME_FIELDS.map((field) => record[field]).find((value) => typeof value === 'string');
  const alias = typeof name === 'string' ? name : '?';
  const row = modelCapabilities(alias);
  const known = row ? Object.entries(row) : Object.entries(record);
  const lists = known.flatMap(([field, value]) =>
    Array.isArray(value) ? [`${LABELS[field] ?? field} ${value.join(' ')}`] : [],
  );
  return [alias, [row?.kind ?? record.kind, ...lists].filter(Boolean).join('  ')];
}

const LABELS: Readonly<Record<string, string>> = { durations: 'seconds', aspectRatios: 'ratios', resolutions: 'sizes' };
