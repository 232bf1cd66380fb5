import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { reasonOf } from '../../callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import type { UploadType } from '../../schemas/media-type.js';
import { didYouMean } from '../../schemas/nearest.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import { UsageError } from '../exit-codes.js';
import { checkFile } from '../references.js';
import { type Call, callNamed, checkCall } from './calls.js';

/** One job of a batch. */
export interface Row {
  /** The line in the prompts file, from 1. */
  readonly line: number;
  /** The caller's name for it; names the file, too. */
  readonly id: string | undefined;
  readonly call: Call;
  /** What is sent. Fields that take an upload id may hold the path of a file, see `files`. */
  readonly params: Fields;
  /** The files of the row, by field. */
  readonly files: readonly RowFile[];
  /** The idempotency key of the row: the same in every run. */
  readonly key: string;
}

/** A file that a row names. */
export interface RowFile {
  readonly field: string;
  /** As it stands in the row. */
  readonly text: string;
  /** Absolute. */
  readonly path: string;
  readonly kind: UploadType;
}

/** How to read a prompts file. */
export interface ReadOptions {
  /** Distinguishes a second run over the same rows, which makes all jobs anew. */
  readonly run: string;
}

const ROW_FIELDS = ['call', 'id', 'params'];
const ROW_ID = /^(?!\.)[\w.-]{1,100}$/;
/** More faults than these help nobody. */
const MOST_FAULTS = 20;

type Draft = Omit<Row, 'key'>;

/**
 * Reads a prompts file: a JSON object a line. Everything that can be wrong without a call is found here, in all rows:
 * syntax, names, the documented rules, files. Throws one UsageError that lists the lines at fault.
 */
export async function readRows(path: string, { run }: ReadOptions): Promise<Row[]> {
  const drafts: Draft[] = [];
  const faults: string[] = [];
  for (const [line, text] of linesOf(path)) {
    try {
      const draft = draftOf(text, { line, folder: dirname(resolve(path)) });
      for (const file of draft.files) await checkFile(file.path, { kind: file.kind });
      drafts.push(draft);
    } catch (reason) {
      faults.push(`line ${line}: ${reasonOf(reason)}`);
    }
  }
  faults.push(...repeatedIds(drafts));
  if (faults.length > 0) {
    const more = faults.length > MOST_FAULTS ? [`and ${faults.length - MOST_FAULTS} more`] : [];
    throw new UsageError(`${path}: ${[...faults.slice(0, MOST_FAULTS), ...more].join('; ')}`);
  }
  if (drafts.length === 0) throw new UsageError(`${path} is empty. Write one JSON object per line.`);
  return withKeys(drafts, { run, name: basename(path) });
}

function linesOf(path: string): [line: number, text: string][] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new UsageError(`"${path}" cannot be read: ${reasonOf(cause)}`, { cause });
  }
  return text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line, at): [number, string] => [at + 1, line.trim()])
    .filter(([, line]) => line !== '');
}

function draftOf(text: string, { line, folder }: { readonly line: number; readonly folder: string }): Draft {
  const fields = parse(text);
  const { call: callName = 'videos', id, ...rest } = fields;
  const params = 'params' in rest ? onlyParams(rest) : rest;
  if (id !== undefined && !(typeof id === 'string' && ROW_ID.test(id))) {
    throw new UsageError('id must be 1 to 100 letters, digits, "-", "_" and "." that can name a file.');
  }
  const call = callNamed(callName);
  const files = filesOf(params, folder);
  checkCall(call, planned(params, files));
  return { line, id, call, params, files };
}

function parse(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`not JSON: ${reasonOf(cause)}`, { cause });
  }
  if (!isFields(value)) throw new UsageError('not a JSON object');
  return value;
}

/** Beside `params` nothing else may stand: what is next to it would be sent by nobody. */
function onlyParams({ params, ...others }: Fields): Fields {
  const stray = Object.keys(others)[0];
  if (stray !== undefined) throw new UsageError(`a row has no field "${stray}". ${didYouMean(stray, ROW_FIELDS)}`);
  if (!isFields(params)) throw new UsageError('params must be an object');
  return params;
}

/** The files in the fields that take upload ids. Paths are relative to the prompts file. */
function filesOf(params: Fields, folder: string): RowFile[] {
  return Object.entries(params).flatMap(([field, value]) => {
    if (!/(^|_)upload_ids?$/.test(field)) return [];
    return [value].flat().flatMap((item) => {
      if (typeof item !== 'string') return [];
      if (/^https?:\/\//i.test(item)) {
        throw new UsageError(`${field} takes files and upload ids. URLs go into the field for URLs.`);
      }
      const path = resolve(folder, item);
      const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
      if (!isFile && !/[/\\.]/.test(item)) return [];
      if (!isFile) throw new UsageError(`${field}: "${item}" is not a file. Paths are relative to the prompts file.`);
      return [{ field, text: item, path, kind: kindOf(field) }];
    });
  });
}

function kindOf(field: string): UploadType {
  if (field.includes('video')) return 'VIDEO';
  return field.includes('audio') ? 'AUDIO' : 'IMAGE';
}

/** The params with something else in the place of each file. */
export function replaceFiles(
  params: Fields,
  files: readonly RowFile[],
  replacement: (file: RowFile) => string,
): Fields {
  const replaced = { ...params };
  for (const file of files) {
    const value = replaced[file.field];
    const put = (item: unknown) => (item === file.text ? replacement(file) : item);
    replaced[file.field] = Array.isArray(value) ? value.map(put) : put(value);
  }
  return replaced;
}

function planned(params: Fields, files: readonly RowFile[]): Fields {
  return replaceFiles(params, files, () => 'planned');
}

function repeatedIds(drafts: readonly Draft[]): string[] {
  const lines = new Map<string, number>();
  return drafts.flatMap(({ id, line }) => {
    if (id === undefined) return [];
    // File systems may not tell upper from lower case.
    const first = lines.get(id.toLowerCase());
    lines.set(id.toLowerCase(), first ?? line);
    return first === undefined ? [] : [`line ${line}: id "${id}" is on line ${first} already`];
  });
}

/**
 * Gives each row its key: from the name of the prompts file and from what the row asks for, with the content of its files.
 * Rows can be moved, added and removed without another job for the rest; equal rows are counted.
 */
async function withKeys(
  drafts: readonly Draft[],
  { run, name }: { readonly run: string; readonly name: string },
): Promise<Row[]> {
  const hashes = new Map<string, Promise<string>>();
  const seen = new Map<string, number>();
  const rows: Row[] = [];
  for (const draft of drafts) {
    const contents = new Map<string, string>();
    for (const { path } of draft.files) {
      const hash = hashes.get(path) ?? hashOf(path);
      hashes.set(path, hash);
      contents.set(path, await hash);
    }
    const { idempotency_key: own, ...params } = draft.params;
    const sent = replaceFiles(params, draft.files, ({ path }) => `sha256:${contents.get(path)}`);
    const content = canonical({ call: draft.call, id: draft.id, params: sent });
    const count = (seen.get(content) ?? 0) + 1;
    seen.set(content, count);
    const key = typeof own === 'string' ? own : idempotencyKeyFrom('batch', name, run, count, digest(content));
    rows.push({ ...draft, params, key });
  }
  return rows;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** JSON with sorted names, so that their order in the row does not matter. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    isFields(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}
