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
  const schemas = await fieldSchemas();
  try {
    const records: CsvRecord[] = parse(text, {
      columns: checkedColumns,
      skip_empty_lines: true,
      info: true,
    });
    return records.map(({ record, info }) => ({ line: info.lines, read: () => rowFields(record, schemas) }));
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

/** The JSON Schema of a field, as far as a cell needs it. */
interface FieldSchema {
  readonly type?: string;
  readonly items?: FieldSchema;
}

/** The schema of each documented field, which is the same in every call. They are loaded for CSV only. */
async function fieldSchemas(): Promise<ReadonlyMap<string, FieldSchema>> {
  const { imageParams, videoParams, videoEditParams, characterParams } = await import(
    '../../adapters/schemas/index.js'
  );
  const calls = [imageParams, videoParams, videoEditParams, characterParams];
  const documented = calls.flatMap((params) => Object.entries(params.toJSONSchema().properties ?? {}));
  return new Map([...(documented as [string, FieldSchema][]), ['extraBody', { type: 'object' }]]);
}

/** The fields of a row. An empty cell is a field that is not given; a column that is not documented is refused with its row. */
function rowFields(record: Readonly<Record<string, string>>, schemas: ReadonlyMap<string, FieldSchema>): Fields {
  const cells = Object.entries(record).filter(([name, cell]) => name !== '' && cell !== '');
  const fields = cells.map(([name, cell]) => {
    try {
      return [name, cellValue(cell, schemas.get(name) ?? {})];
    } catch (cause) {
      throw new UsageError(`${name}: ${reasonOf(cause)}`, { cause });
    }
  });
  return Object.fromEntries(fields);
}

function cellValue(cell: string, { type, items }: FieldSchema): unknown {
  const text = cell.trim();
  if (type === 'number' || type === 'integer') {
    const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    // Of a longer one a part of the digits would be lost.
    if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
    throw new UsageError(`${show(cell)} is not a number of up to 15 digits, such as 5.`);
  }
  if (type === 'boolean') {
    // Spreadsheets write TRUE and FALSE.
    if (/^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
    throw new UsageError(`${show(cell)} is neither true nor false.`);
  }
  if (type === 'array' && items?.type === 'string' && !text.startsWith('[')) {
    // A URL may contain a semicolon, so that URLs end where another begins.
    const separator = /^https?:/i.test(text) ? /;(?=\s*https?:)/i : ';';
    return text.split(separator).map((item) => item.trim());
  }
  return type === 'array' || type === 'object' ? readJson(text) : cell;
}
