// A prompts file in CSV: what the cells of a row are, by the kinds of their fields.
import { parse } from 'csv-parse/sync';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Fields } from '../../schemas/envelope.js';
import { show } from '../../schemas/show.js';
import { UsageError } from '../errors.js';

/** A row of a prompts file as it was written, or why it cannot be read. */
export interface ReadRow {
  /** The line that it begins on, from 1. */
  readonly line: number;
  /** Throws a UsageError for what is not a row. */
  readonly read: () => Fields;
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

export async function csvRows(path: string, text: string): Promise<ReadRow[]> {
  const kinds = await fieldKinds();
  try {
    const records: CsvRecord[] = parse(text, {
      columns: checkedColumns,
      skip_empty_lines: true,
      info: true,
    });
    return records.map(({ record, info }) => ({ line: info.lines, read: () => rowFields(record, kinds) }));
  } catch (cause) {
    throw new UsageError(`${path}: not CSV: ${reasonOf(cause)}`, { cause });
  }
}

/** The names of the columns. A joined sheet may have one twice, and a spreadsheet may separate them by semicolons. */
function checkedColumns(names: readonly string[]): string[] {
  const columns = names.map((name) => name.trim());
  const [only = ''] = columns;
  if (columns.length === 1 && only.includes(';')) {
    throw new UsageError(`the header has one column, "${only}". Separate columns by commas, not by semicolons.`);
  }
  const repeated = columns.find((name, at) => name !== '' && columns.indexOf(name) !== at);
  if (repeated === undefined) return columns;
  throw new UsageError(`the column "${repeated}" stands twice. Leave one of them out.`);
}

export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`not JSON: ${reasonOf(cause)}`, { cause });
  }
}

type FieldKind = 'text' | 'number' | 'boolean' | 'texts' | 'objects' | 'object';

/** Columns beside the documented fields whose cells are text, whatever they look like. */
const ROW_TEXTS = ['call', 'id', 'label', 'name'];

/** The kind of each documented field, which is the same in every call. The schemas are loaded for CSV only. */
async function fieldKinds(): Promise<ReadonlyMap<string, FieldKind>> {
  const { imageParams, videoParams, videoEditParams, characterParams } = await import(
    '../../adapters/schemas/index.js'
  );
  const kinds = new Map<string, FieldKind>([
    ...ROW_TEXTS.map((name) => [name, 'text'] as const),
    ['extraBody', 'object'],
  ]);
  for (const params of [imageParams, videoParams, videoEditParams, characterParams]) {
    for (const [name, schema] of Object.entries(params.toJSONSchema().properties ?? {})) {
      kinds.set(name, kindOf(schema as FieldSchema));
    }
  }
  return kinds;
}

/** The JSON Schema of a field, as far as it tells the kind. */
interface FieldSchema {
  readonly type?: string;
  readonly items?: FieldSchema;
}

function kindOf({ type, items }: FieldSchema): FieldKind {
  if (type === 'array') return items?.type === 'string' ? 'texts' : 'objects';
  if (type === 'integer' || type === 'number') return 'number';
  return type === 'boolean' ? 'boolean' : 'text';
}

/** The fields of a row. An empty cell is a field that is not given. */
function rowFields(record: Readonly<Record<string, string>>, kinds: ReadonlyMap<string, FieldKind>): Fields {
  const cells = Object.entries(record).filter(([name, cell]) => name !== '' && cell !== '');
  return Object.fromEntries(cells.map(([name, cell]) => [name, cellValue({ name, cell, kind: kinds.get(name) })]));
}

interface Cell {
  readonly name: string;
  readonly cell: string;
  readonly kind: FieldKind | undefined;
}

function cellValue({ name, cell, kind }: Cell): unknown {
  const text = cell.trim();
  switch (kind) {
    case 'text':
      return cell;
    case 'number':
      return numberIn(text) ?? refuse({ name, cell }, 'is not a number of up to 15 digits, such as 5');
    case 'boolean':
      return booleanIn(text) ?? refuse({ name, cell }, 'is neither true nor false');
    case 'texts':
      return text.startsWith('[') ? jsonIn(name, text) : itemsIn(text);
    case 'objects':
      if (!text.startsWith('[')) refuse({ name, cell }, 'is not a list of objects. Write it in JSON: [{"type":…}]');
      return jsonIn(name, text);
    case 'object':
      return jsonIn(name, text);
    default:
      // A column that is not documented is refused with its row.
      return cell;
  }
}

/** The items between semicolons. A URL may contain one, so that URLs end where another begins. */
function itemsIn(text: string): string[] {
  const separator = /^https?:/i.test(text) ? /;(?=\s*https?:)/i : ';';
  return text.split(separator).map((item) => item.trim());
}

/** A number, unless a part of its digits would be lost. */
function numberIn(text: string): number | undefined {
  const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** Spreadsheets write TRUE and FALSE. */
function booleanIn(text: string): boolean | undefined {
  if (!/^(true|false)$/i.test(text)) return undefined;
  return text.toLowerCase() === 'true';
}

function jsonIn(name: string, text: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw new UsageError(`${name}: ${reasonOf(error)}`, { cause: error });
  }
}

function refuse({ name, cell }: Pick<Cell, 'name' | 'cell'>, problem: string): never {
  throw new UsageError(`${name}: ${show(cell)} ${problem}.`);
}
