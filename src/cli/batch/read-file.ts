import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { UsageError } from '../exit-codes.js';

/** A row of a prompts file as it was written, or why it cannot be read. */
export interface ReadRow {
  /** The line that it begins on, from 1. */
  readonly line: number;
  /** Throws a UsageError for what is not a row. */
  readonly read: () => Fields;
}

/** The rows of a prompts file: CSV with a header where the name ends in `.csv`, else a JSON object per line. */
export function readPrompts(path: string): ReadRow[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    throw new UsageError(`"${path}" cannot be read: ${reasonOf(cause)}`, { cause });
  }
  const rows = /\.csv$/i.test(path) ? csvRows(path, text) : jsonRows(text);
  if (rows.length > 0) return rows;
  throw new UsageError(`${path} is empty. Write one JSON object per line, or CSV with a header in a file named .csv.`);
}

function jsonRows(text: string): ReadRow[] {
  const lines = text.split('\n').map((line, at) => ({ line: at + 1, text: line.trim() }));
  return lines.filter((row) => row.text !== '').map((row) => ({ line: row.line, read: () => readJsonRow(row.text) }));
}

function readJsonRow(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`not JSON: ${reasonOf(cause)}`, { cause });
  }
  if (!isFields(value)) throw new UsageError('not a JSON object');
  return value;
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

function csvRows(path: string, text: string): ReadRow[] {
  try {
    const records: CsvRecord[] = parse(text, {
      columns: (names: string[]) => names.map((name) => name.trim()),
      skip_empty_lines: true,
      info: true,
    });
    return records.map(({ record, info }) => ({ line: info.lines, read: () => rowFields(record) }));
  } catch (cause) {
    throw new UsageError(`${path}: not CSV: ${reasonOf(cause)}`, { cause });
  }
}

/** Columns whose cells stay text, whatever they look like. */
const TEXTS: readonly string[] = ['prompt', 'id', 'name', 'label', 'idempotency_key'];

/** The fields of a CSV row. An empty cell is a field that is not given. */
function rowFields(record: Readonly<Record<string, string>>): Fields {
  const cells = Object.entries(record).filter(([name, cell]) => name !== '' && cell !== '');
  return Object.fromEntries(cells.map(([name, cell]) => [name, TEXTS.includes(name) ? cell : cellValue(name, cell)]));
}

function cellValue(name: string, cell: string): unknown {
  const text = cell.trim();
  if (/^[[{]/.test(text)) return readJsonRow(`{"value":${text}}`).value;
  if (/_(ids|urls)$/.test(name)) return text.split(';').map((item) => item.trim());
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : cell;
}
