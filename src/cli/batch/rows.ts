import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'csv-parse/sync';
import { fromPath } from '../../adapters/node/index.js';
import { type ClientOptions, type GenClient, idempotencyKeyFrom } from '../../index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { formatValue } from '../../schemas/format-value.js';
import { didYouMean } from '../../schemas/spelling.js';
import { UsageError } from '../errors.js';
import { type CallName, type JobCreators, referenceIn } from '../run-job.js';
import { repeatedName } from './repeated-name.js';

export const STDIN = '-';

export interface PromptsFile {
  readonly path: string;
  /** Part of each row's key. A name that ends in `.csv` or `.tsv` means CSV. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

async function parsePrompts({ path, name, bytes }: PromptsFile): Promise<UnparsedRow[]> {
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

function jsonRows(text: string): UnparsedRow[] {
  const read = (json: string) => {
    const value = readJson(json);
    if (!isFields(value)) throw new UsageError('not a JSON object');
    const duplicate = repeatedName(json);
    if (duplicate !== undefined) throw new UsageError(`"${duplicate}" appears twice. Remove one of them.`);
    return value;
  };
  return text.split('\n').flatMap((json, at) => (json.trim() === '' ? [] : [{ line: at + 1, read: () => read(json) }]));
}

export interface Row {
  /** The line in the prompts file, from 1. */
  readonly line: number;
  /** The name of the row and of its file. */
  readonly id: string | undefined;
  /** Label for grouping costs. */
  readonly label: string | undefined;
  readonly call: CallName;
  /** Contains files by value. Rows with the same file share its source, so that it is uploaded once. */
  readonly params: Fields;
  /** Undocumented fields. */
  readonly extraBody: Fields | undefined;
  /** A digest of the fields and files. */
  readonly content: string;
  /** The idempotency key, the same in every run. */
  readonly key: string;
  /** If true, the row sets its key. Otherwise, the key is derived from its content. */
  readonly hasOwnKey: boolean;
}

/** Throws if the client would reject a row's create before sending a request. */
export type RowCheck = (row: Pick<Row, 'call' | 'params' | 'extraBody'>) => Promise<void>;

/** Returns a check that calls a row's create with a client that sends nothing. */
export function rowCheck(createClient: (options: ClientOptions) => GenClient): RowCheck {
  return async ({ call, params, extraBody }) => {
    const controller = new AbortController();
    const fetch = () => {
      controller.abort();
      return Promise.reject(controller.signal.reason);
    };
    const client = createClient({ apiKey: 'none', rateLimit: 'off', fetch });
    const { signal } = controller;
    try {
      await (client as JobCreators)[call].create(params as never, { extraBody, signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
}

const CALLS = ['images', 'videos', 'videoEdits', 'characters'] as const satisfies readonly CallName[];
const ROW_FIELDS = ['call', 'id', 'label', 'params', 'extraBody'];
/** A valid file name on every system. Windows reserves device names. */
const ROW_ID = /^(?!\.|(con|prn|aux|nul|com\d|lpt\d)(\.|$))[\w.-]{1,100}$/i;
export const MAX_PROBLEMS = 20;

/** Files of the rows, by absolute path. */
type Sources = Map<string, ReturnType<typeof fromPath>>;

type RowDraft = Omit<Row, 'key' | 'hasOwnKey' | 'content'>;

/**
 * Reads and checks the rows of a prompts file without sending a request. Throws one UsageError that lists the invalid
 * lines.
 */
export async function readRows(file: PromptsFile, check: RowCheck): Promise<Row[]> {
  const { path, name } = file;
  const folder = path === STDIN ? '.' : dirname(resolve(path));
  const drafts: RowDraft[] = [];
  const problems: string[] = [];
  const sources: Sources = new Map();
  for (const row of await parsePrompts(file)) {
    try {
      const draft = draftOf(row, { folder, sources });
      await check(draft);
      drafts.push(draft);
    } catch (reason) {
      problems.push(`line ${row.line}: ${reasonOf(reason)}`);
    }
  }
  // File systems may ignore case.
  problems.push(...duplicatesOf(drafts, 'id', ({ id }) => id?.toLowerCase()));
  problems.push(...duplicatesOf(drafts, 'idempotency_key', ({ params }) => params.idempotency_key));
  if (problems.length > 0) {
    const more = problems.length > MAX_PROBLEMS ? [`and ${problems.length - MAX_PROBLEMS} more`] : [];
    throw new UsageError(`${path}: ${[...problems.slice(0, MAX_PROBLEMS), ...more].join('; ')}`);
  }
  return withKeys(drafts, name, sources);
}

function draftOf(
  { line, read }: UnparsedRow,
  context: { readonly folder: string; readonly sources: Sources },
): RowDraft {
  const { call: name = 'videos', id, label, extraBody, ...rest } = read();
  if (extraBody !== undefined && !isFields(extraBody)) throw new UsageError('extraBody must be a JSON object.');
  if (id !== undefined && !(typeof id === 'string' && ROW_ID.test(id))) {
    throw new UsageError('id must be 1 to 100 letters, digits, "-", "_", and "." that can name a file on any system.');
  }
  if (label !== undefined && !(typeof label === 'string' && label !== '')) {
    throw new UsageError('label must be a non-empty string.');
  }
  const call = CALLS.find((known) => known === name);
  if (call === undefined)
    throw new UsageError(`call "${String(name)}" does not exist. ${didYouMean(String(name), CALLS)}`);
  return { line, id, label, call, params: withSources('params' in rest ? onlyParams(rest) : rest, context), extraBody };
}

/** Returns the params. Throws for any other field, because it would never be sent. */
function onlyParams({ params, ...otherFields }: Fields): Fields {
  const strayField = Object.keys(otherFields)[0];
  if (strayField !== undefined)
    throw new UsageError(`a row has no field "${strayField}". ${didYouMean(strayField, ROW_FIELDS)}`);
  if (!isFields(params)) throw new UsageError('params must be a JSON object.');
  return params;
}

/** Replaces file paths with upload sources. Paths are relative to the prompts file. */
function withSources(
  params: Fields,
  { folder, sources }: { readonly folder: string; readonly sources: Sources },
): Fields {
  const sourceOf = (reference: string) => {
    const { kind, path } = referenceIn(reference, folder);
    if (kind === 'url') throw new UsageError(`"${reference}" is a URL. Pass it in the field for URLs.`);
    if (kind === 'upload') return reference;
    const source = sources.get(path) ?? fromPath(path);
    sources.set(path, source);
    return source;
  };
  return mapItems(params, (item, field) => {
    if (typeof item !== 'string' || !/upload_ids?$/.test(field)) return item;
    try {
      return sourceOf(item);
    } catch (cause) {
      throw new UsageError(`${field}: ${reasonOf(cause)} Paths are relative to the prompts file.`, { cause });
    }
  });
}

/** Returns the params after applying `change` to each value, or to each item of a list. */
export function mapItems(params: Fields, change: (item: unknown, field: string) => unknown): Fields {
  const fields = Object.entries(params).map(([field, value]) => [
    field,
    Array.isArray(value) ? value.map((item) => change(item, field)) : change(value, field),
  ]);
  return Object.fromEntries(fields);
}

function duplicatesOf(drafts: readonly RowDraft[], field: string, keyOf: (draft: RowDraft) => unknown): string[] {
  const lines = new Map<unknown, number>();
  return drafts.flatMap((draft) => {
    const value = keyOf(draft);
    const firstLine = lines.get(value);
    if (value !== undefined) lines.set(value, firstLine ?? draft.line);
    return firstLine === undefined
      ? []
      : [`line ${draft.line}: ${field} ${formatValue(value)} is already on line ${firstLine}`];
  });
}

/**
 * Derives each row's key from the name of the prompts file, the row's fields, and the content of its files. Moving, adding, or
 * removing rows creates no new jobs for the others. Equal rows are numbered.
 */
async function withKeys(drafts: readonly RowDraft[], name: string, sources: Sources): Promise<Row[]> {
  const hashes = new Map<unknown, string>();
  for (const [path, source] of sources) hashes.set(source, await fileHash(path));
  const counts = new Map<string, number>();
  return drafts.map((draft) => {
    const { idempotency_key: ownKey, ...params } = draft.params;
    const hashedParams = mapItems(params, (item) => hashes.get(item) ?? item);
    const content = canonical({ call: draft.call, id: draft.id, params: hashedParams, extraBody: draft.extraBody });
    const count = (counts.get(content) ?? 0) + 1;
    counts.set(content, count);
    const hash = createHash('sha256').update(content).digest('hex');
    const hasOwnKey = typeof ownKey === 'string';
    const key = hasOwnKey ? ownKey : idempotencyKeyFrom('batch', name, count, hash);
    return { ...draft, params, content: hash, key, hasOwnKey };
  });
}

async function fileHash(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** Serializes with sorted names, so that the order of the fields doesn't change the key. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    isFields(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}

interface UnparsedRow {
  readonly line: number;
  /** Throws a UsageError for an invalid row. */
  readonly read: () => Fields;
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

async function csvRows(path: string, text: string): Promise<UnparsedRow[]> {
  const schemas = await fieldSchemas();
  try {
    const records: CsvRecord[] = parse(text, {
      ...separatorOf(text),
      columns: checkedColumns,
      skip_empty_lines: true,
      // Spreadsheets export empty rows as separators.
      skip_records_with_empty_values: true,
      info: true,
    });
    return records.map(({ record, info }) => ({ line: info.lines, read: () => rowFields(record, schemas) }));
  } catch (cause) {
    throw new UsageError(`${path}: not CSV: ${reasonOf(cause)}`, { cause });
  }
}

/** Detects the separator: Excel's first line `sep=;`, otherwise tabs if the header has no comma. */
function separatorOf(text: string): { readonly delimiter: string; readonly from_line: number } {
  const [, delimiter] = /^sep=(.)\r?\n/i.exec(text) ?? [];
  if (delimiter !== undefined) return { delimiter, from_line: 2 };
  const [header = ''] = text.split('\n', 1);
  return { delimiter: header.includes('\t') && !header.includes(',') ? '\t' : ',', from_line: 1 };
}

function checkedColumns(names: readonly string[]): string[] {
  const columns = names.map((name) => name.trim());
  const [onlyColumn = ''] = columns;
  if (columns.length === 1 && onlyColumn.includes(';')) {
    throw new UsageError(`the header has one column, "${onlyColumn}". Separate columns with commas, not semicolons.`);
  }
  const duplicate = columns.find((name, at) => name !== '' && columns.indexOf(name) !== at);
  if (duplicate === undefined) return columns;
  throw new UsageError(`the column "${duplicate}" appears twice. Remove one of them.`);
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

/** Returns the schema of each documented field, which is the same in every call. Called for CSV only. */
async function fieldSchemas(): Promise<ReadonlyMap<string, FieldSchema>> {
  const { imageParams, videoParams, videoEditParams, characterParams } = await import(
    '../../adapters/schemas/index.js'
  );
  const calls = [imageParams, videoParams, videoEditParams, characterParams];
  const documentedFields = calls.flatMap((params) => Object.entries(params.toJSONSchema().properties ?? {}));
  return new Map([...(documentedFields as [string, FieldSchema][]), ['extraBody', { type: 'object' }]]);
}

/** Returns the fields of a row, without empty cells. */
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

/** Returns the cell. Throws for a spreadsheet's error value, which must not be charged as a prompt. */
function checkedCell(cell: string): string {
  if (!ERROR_VALUE.test(cell.trim())) return cell;
  throw new UsageError(`"${cell.trim()}" is the error value of a spreadsheet. Correct its formula.`);
}

function cellValue(text: string, { type, items }: FieldSchema): unknown {
  if (type === 'number' || type === 'integer') {
    const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    // A larger number would lose digits.
    if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
    throw new UsageError(`${formatValue(text)} must be a number of up to 15 digits, such as 5.`);
  }
  if (type === 'boolean') {
    // Spreadsheets write TRUE and FALSE.
    if (/^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
    throw new UsageError(`${formatValue(text)} must be true or false.`);
  }
  if (type === 'array' && items?.type === 'string' && !text.startsWith('[')) {
    // A URL may contain semicolons, so split only before the next URL.
    const separator = /^https?:/i.test(text) ? /;(?=\s*https?:)/i : ';';
    return text.split(separator).map((item) => item.trim());
  }
  return type === 'array' || type === 'object' ? readJson(text) : text;
}
