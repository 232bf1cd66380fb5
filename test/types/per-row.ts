import fields from '../fixtures/fields.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import type { Snippet } from './snippet.js';

/** Params that depend on the model, with a value that no model supports. */
const LIMITED = [
  { kind: 'video', param: 'duration', values: 'durations', invalid: 7 },
  { kind: 'video', param: 'resolution', values: 'resolutions', invalid: '8k' },
  { kind: 'image', param: 'ratio', values: 'aspectRatios', invalid: '2:1' },
  { kind: 'image', param: 'resolution', values: 'resolutions', invalid: '4k' },
] as const;

/** Returns a snippet for every alias with every value of every limited param, from the model table. */
export function perModel(): Snippet[] {
  const listOf = (model: object, name: string): readonly unknown[] => Reflect.get(model, name) ?? [];
  return models.flatMap((model) =>
    LIMITED.filter(({ kind }) => kind === model.kind).flatMap(({ kind, param, values, invalid }) => {
      const others = models.filter((other) => other.kind === kind).flatMap((other) => listOf(other, values));
      return [...new Set([...others, invalid])].map((value): Snippet => {
        const isSupported = listOf(model, values).includes(value);
        return {
          name: `${model.alias} ${isSupported ? 'supports' : 'does not support'} ${param} ${value}`,
          code: `client.${kind}s.create({ model: '${model.alias}', prompt: 'x', ${param}: ${JSON.stringify(value)} })`,
          ...(isSupported ? {} : { error: param }),
        };
      });
    }),
  );
}

/** Returns snippets for every documented field of every call, with a value of its type and one of another type. */
export function perField(): Snippet[] {
  return Object.entries(fields).flatMap(([call, rows]) =>
    (rows as readonly Field[])
      .filter((row) => row.edit !== true && !(call === 'characters.register' && row.name === 'mode'))
      .flatMap((row) => {
        const wrong = row.type === 'boolean' ? `'yes'` : row.type === 'string' ? '{}' : 'true';
        return [
          { name: `${call} accepts ${row.name}`, code: callWith(call, row, sampleOf(row)) },
          { name: `${call} rejects ${row.name} of another type`, code: callWith(call, row, wrong), error: row.name },
        ];
      }),
  );
}

/** Returns snippets that pass a file to every documented field for an upload ID, and IDs mixed with files to the list fields. */
export function perUpload(): Snippet[] {
  return Object.entries(fields).flatMap(([call, rows]) =>
    (rows as readonly Field[])
      .filter(({ name }) => /upload_ids?$/.test(name))
      .map((row): Snippet => {
        const value = row.type === 'string[]' ? `['upl_1', file, new Uint8Array(1)]` : 'file';
        return { name: `${call} accepts files as ${row.name}`, code: callWith(call, row, value) };
      }),
  );
}

/** Returns a call with the required fields, and `row` set to `value`. */
export function callWith(call: string, row: Field, value: string): string {
  const rows: readonly Field[] = Object.entries(fields).find(([name]) => name === call)?.[1] ?? [];
  const rest = rows
    .filter((other) => other.required === true && other.name !== row.name && other.name !== 'mode')
    .map((other) => `${other.name}: ${sampleOf(other)}`);
  const source = call === 'videoEdits.create' && row.oneOf !== true ? ["video: 'https://a.test/a.mp4'"] : [];
  return `client.${call}({ ${[...rest, ...source, `${row.name}: ${value}`].join(', ')} })`;
}

/** A row of fields.json. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly required?: boolean;
  readonly oneOf?: boolean;
  readonly edit?: boolean;
  readonly aliasOf?: string;
  readonly example?: string | number;
  readonly examples?: readonly string[];
}

const VALUES: Readonly<Record<string, string>> = {
  string: `'x'`,
  'string[]': `['x']`,
  boolean: 'true',
  number: '1',
  references: `[{ type: 'image_url', url: 'https://a.test/a.png' }]`,
  content: `[{ type: 'text', text: 'x' }]`,
};

/** Returns a value of the row's type, as source code. */
export function sampleOf(row: Field): string {
  return JSON.stringify(row.example ?? row.examples?.[0])?.replaceAll('"', "'") ?? VALUES[row.type] ?? 'undefined';
}
