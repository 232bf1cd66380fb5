import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'csv-parse/sync';
import { fromPath } from '../../adapters/node/index.js';
import { isUploadField } from '../../rules/fields.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { JOB_CALLS, type JobCall } from '../../schemas/job.js';
import { isDeviceName } from '../../schemas/media-type.js';
import { didYouMean, show } from '../../schemas/show.js';
import { idempotencyKeyFrom, idempotencyKeyOf } from '../../transport/idempotency.js';
import { checkFiles } from '../../uploading/body-files.js';
import { UsageError } from '../errors.js';
import { checkCall, referenceIn } from '../run-job.js';
import { repeatedName } from './repeated-name.js';

export const STDIN = '-';

export interface PromptsFile {
  readonly path: string;
  /** The name that the keys of the rows are made from. One that ends in `.csv` is CSV. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The rows of a prompts file: CSV with a header where the name ends in `.csv`, else a JSON object per line. */
async function readPrompts({ path, name, bytes }: PromptsFile): Promise<ReadRow[]> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UsageError(`${path} is not UTF-8. Save it as UTF-8.`, { cause });
  }
  if (/^\s*<(!doctype|html|\?xml)/i.test(text))
    throw new UsageError(`${path} is a web page or XML, not rows. Export the sheet as CSV.`);
  const rows = /\.[ct]sv$/i.test(name) ? await csvRows(path, text) : jsonRows(text);
  if (rows.length > 0) return rows;
  throw new UsageError(`${path} is empty. Write one JSON object per line, or CSV with a header in a file named .csv.`);
}

function jsonRows(text: string): ReadRow[] {
  const read = (line: string) => {
    const value = readJson(line);
    if (!isFields(value)) throw new UsageError('not a JSON object');
    const repeated = repeatedName(line);
    if (repeated !== undefined) throw new UsageError(`"${repeated}" appears twice. Remove one of them.`);
    return value;
  };
  const lines = text
    .split('\n')
    .map((line, at) => ({ line: at + 1, read: () => read(line), isRow: line.trim() !== '' }));
  return lines.filter(({ isRow }) => isRow);
}

export interface Row {
  /** The line in the prompts file, from 1. */
  readonly line: number;
  /** The caller's name for it; names the file, too. */
  readonly id: string | undefined;
  /** The caller's label for its cost; the id without one. */
  readonly label: string | undefined;
  readonly call: JobCall;
  /** What is sent, with files by value. Rows that name one file share its source, so that it is uploaded once. */
  readonly params: Fields;
  /** Fields that the documentation does not have. */
  readonly extraBody: Fields | undefined;
  /** The idempotency key of the row: the same in every run. */
  readonly key: string;
}

const ROW_FIELDS = ['call', 'id', 'label', 'params', 'extraBody'];
const ROW_ID = /^(?!\.)[\w.-]{1,100}$/;
/** More faults than these help nobody. */
export const MOST_FAULTS = 20;

/** The files that rows name, by their absolute path. */
type Sources = Map<string, ReturnType<typeof fromPath>>;

type RowDraft = Omit<Row, 'key'>;

/**
 * Reads a prompts file. Everything that can be wrong without a call is found here, in all rows: syntax, names, the
 * documented rules, files. Throws one UsageError that lists the lines at fault.
 */
export async function readRows(file: PromptsFile): Promise<Row[]> {
  const { path, name } = file;
  const folder = path === STDIN ? '.' : dirname(resolve(path));
  const drafts: RowDraft[] = [];
  const faults: string[] = [];
  const sources: Sources = new Map();
  for (const row of await readPrompts(file)) {
    try {
      const draft = draftOf(row, { folder, sources });
      await checkFiles(draft.params);
      drafts.push(draft);
    } catch (reason) {
      faults.push(`line ${row.line}: ${reasonOf(reason)}`);
    }
  }
  // File systems may not tell upper from lower case.
  faults.push(...repeated(drafts, 'id', ({ id }) => id?.toLowerCase()));
  faults.push(...repeated(drafts, 'idempotency_key', ({ params }) => params.idempotency_key));
  if (faults.length > 0) {
    const more = faults.length > MOST_FAULTS ? [`and ${faults.length - MOST_FAULTS} more`] : [];
    throw new UsageError(`${path}: ${[...faults.slice(0, MOST_FAULTS), ...more].join('; ')}`);
  }
  return withKeys(drafts, name, sources);
}

function draftOf({ line, read }: ReadRow, at: { readonly folder: string; readonly sources: Sources }): RowDraft {
  const { call: callName = 'videos', id, label, extraBody, ...rest } = read();
  if (extraBody !== undefined && !isFields(extraBody)) throw new UsageError('extraBody must be an object.');
  if (id !== undefined && !(typeof id === 'string' && ROW_ID.test(id))) {
    throw new UsageError('id must be 1 to 100 letters, digits, "-", "_" and "." that can name a file.');
  }
  if (typeof id === 'string' && isDeviceName(id)) {
    throw new UsageError(`id "${id}" is the name of a device on Windows. Give the row another id.`);
  }
  if (label !== undefined && !(typeof label === 'string' && label !== '')) {
    throw new UsageError('label must be a non-empty string.');
  }
  const call = callNamed(callName);
  const params = withSources('params' in rest ? onlyParams(rest) : rest, at);
  checkCall(call, params, extraBody);
  // A key that is left out because of its type would pay for the row again when its other fields change.
  idempotencyKeyOf(undefined, params);
  return { line, id, label, call, params, extraBody };
}

function callNamed(name: unknown): JobCall {
  const call = JOB_CALLS.find((known) => known === name);
  if (call === undefined)
    throw new UsageError(`call "${String(name)}" does not exist. ${didYouMean(String(name), JOB_CALLS)}`);
  return call;
}

/** Beside `params` nothing else may stand: what is next to it would be sent by nobody. */
function onlyParams({ params, ...others }: Fields): Fields {
  const stray = Object.keys(others)[0];
  if (stray !== undefined) throw new UsageError(`a row has no field "${stray}". ${didYouMean(stray, ROW_FIELDS)}`);
  if (!isFields(params)) throw new UsageError('params must be an object');
  return params;
}

/** The params with a source for each file in a field that takes upload IDs. Paths are relative to the prompts file. */
function withSources(
  params: Fields,
  { folder, sources }: { readonly folder: string; readonly sources: Sources },
): Fields {
  const sourceOf = (text: string) => {
    const { kind, path } = referenceIn(text, folder);
    if (kind === 'url') throw new UsageError(`"${text}" is a URL. Pass it in the field for URLs.`);
    if (kind === 'upload') return text;
    const source = sources.get(path) ?? fromPath(path);
    sources.set(path, source);
    return source;
  };
  return mapItems(params, (item, field) => {
    if (typeof item !== 'string' || !isUploadField(field)) return item;
    try {
      return sourceOf(item);
    } catch (cause) {
      throw new UsageError(`${field}: ${reasonOf(cause)} Paths are relative to the prompts file.`, { cause });
    }
  });
}

/** The params with every value changed, and every item of the lists in them. */
function mapItems(params: Fields, change: (item: unknown, field: string) => unknown): Fields {
  const fields = Object.entries(params).map(([field, value]) => [
    field,
    Array.isArray(value) ? value.map((item) => change(item, field)) : change(value, field),
  ]);
  return Object.fromEntries(fields);
}

function repeated(drafts: readonly RowDraft[], what: string, read: (draft: RowDraft) => unknown): string[] {
  const lines = new Map<unknown, number>();
  return drafts.flatMap((draft) => {
    const value = read(draft);
    const first = lines.get(value);
    if (value !== undefined) lines.set(value, first ?? draft.line);
    return first === undefined ? [] : [`line ${draft.line}: ${what} ${show(value)} is on line ${first} already`];
  });
}

/**
 * Gives each row its key: from the name of the prompts file and from what the row asks for, with the content of its files.
 * Rows can be moved, added and removed without another job for the rest; equal rows are counted.
 */
async function withKeys(drafts: readonly RowDraft[], name: string, sources: Sources): Promise<Row[]> {
  const hashes = new Map<unknown, string>();
  for (const [path, source] of sources) hashes.set(source, await fileHash(path));
  const seen = new Map<string, number>();
  return drafts.map((draft) => {
    const { idempotency_key: own, ...params } = draft.params;
    const hashed = mapItems(params, (item) => hashes.get(item) ?? item);
    const content = canonical({ call: draft.call, id: draft.id, params: hashed, extraBody: draft.extraBody });
    const count = (seen.get(content) ?? 0) + 1;
    seen.set(content, count);
    const hash = createHash('sha256').update(content).digest('hex');
    return { ...draft, params, key: typeof own === 'string' ? own : idempotencyKeyFrom('batch', name, count, hash) };
  });
}

async function fileHash(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** JSON with sorted names, so that their order in the row does not matter. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    isFields(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}

// CSV: what the cells of a row are, by the kinds of their fields.

/** A row of a prompts file as it was written, or why it cannot be read. */
interface ReadRow {
  readonly line: number;
  /** Throws a UsageError for what is not a row. */
  readonly read: () => Fields;
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

async function csvRows(path: string, text: string): Promise<ReadRow[]> {
  const schemas = await fieldSchemas();
  try {
    const records: CsvRecord[] = parse(text, {
      ...separatorOf(text),
      columns: checkedColumns,
      skip_empty_lines: true,
      // Spreadsheets leave rows of separators only.
      skip_records_with_empty_values: true,
      info: true,
    });
    return records.map(({ record, info }) => ({ line: info.lines, read: () => rowFields(record, schemas) }));
  } catch (cause) {
    throw new UsageError(`${path}: not CSV: ${reasonOf(cause)}`, { cause });
  }
}

/** What separates the columns: what a line `sep=;` says, as Excel reads it, or else tabs if the header has no comma. */
function separatorOf(text: string): { readonly delimiter: string; readonly from_line: number } {
  const [, given] = /^sep=(.)\r?\n/i.exec(text) ?? [];
  if (given !== undefined) return { delimiter: given, from_line: 2 };
  const [header = ''] = text.split('\n', 1);
  return { delimiter: header.includes('\t') && !header.includes(',') ? '\t' : ',', from_line: 1 };
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
  throw new UsageError(`the column "${repeated}" appears twice. Remove one of them.`);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`not JSON: ${reasonOf(cause)}`, { cause });
  }
}

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
  const cells = Object.entries(record).filter(([name, cell]) => name !== '' && cell.trim() !== '');
  const fields = cells.map(([name, cell]) => {
    try {
      return [
        name,
        name === 'prompt' ? checkedCell(cell) : cellValue(checkedCell(cell).trim(), schemas.get(name) ?? {}),
      ];
    } catch (cause) {
      throw new UsageError(`${name}: ${reasonOf(cause)}`, { cause });
    }
  });
  return Object.fromEntries(fields);
}

const ERROR_VALUE =
  /^(#(NAME\?|REF!|VALUE!|DIV\/0!|N\/A|NULL!|NUM!|SPILL!|CALC!|FIELD!|BLOCKED!|CONNECT!|BUSY!|UNKNOWN!|ERROR!|GETTING_DATA)|Err:\d{3})$/;

/** A formula that failed would be paid for as a prompt. */
function checkedCell(cell: string): string {
  if (!ERROR_VALUE.test(cell.trim())) return cell;
  throw new UsageError(`"${cell.trim()}" is the error value of a spreadsheet. Correct its formula.`);
}

function cellValue(text: string, { type, items }: FieldSchema): unknown {
  if (type === 'number' || type === 'integer') {
    const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    // Of a longer one a part of the digits would be lost.
    if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
    throw new UsageError(`${show(text)} is not a number of up to 15 digits, such as 5.`);
  }
  if (type === 'boolean') {
    // Spreadsheets write TRUE and FALSE.
    if (/^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
    throw new UsageError(`${show(text)} is neither true nor false.`);
  }
  if (type === 'array' && items?.type === 'string' && !text.startsWith('[')) {
    // A URL may contain a semicolon, so that URLs end where another begins.
    const separator = /^https?:/i.test(text) ? /;(?=\s*https?:)/i : ';';
    return text.split(separator).map((item) => item.trim());
  }
  return type === 'array' || type === 'object' ? readJson(text) : text;
}
