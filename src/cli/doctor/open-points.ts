import { type Fields, isFields } from '../../schemas/envelope.js';
import type { Seen } from './observer.js';

/** Something that the service's document leaves open. */
export interface OpenPoint {
  readonly point: string;
  /** Whether an answer has shown it. */
  readonly settled: boolean;
  /** What the answer shows; else why it cannot be seen. */
  readonly found: unknown;
  /** The request that shows it. */
  readonly by?: string;
}

/** The answers that open points are read from. */
export interface Answers {
  readonly models: Seen;
  readonly unknownJob: Seen;
  readonly voices: Seen;
  readonly characters: Seen;
  /** The first registered character, where there is one. */
  readonly character: Seen | undefined;
  readonly unnamedCharacter: Seen;
  readonly integration: Seen;
}

/** What only a job or an upload shows, and what that would take. */
const UNSEEN: Readonly<Record<string, string>> = {
  'bodies of image, character and edit creates': 'shown by a job',
  'place of the warning of a create': 'shown by a job whose clip could not be used',
  'completing an upload twice': 'shown by an upload',
  'answer to the deletion of a character': 'shown by deleting a character',
  'providerOutputUrl in the event of a failed job': 'shown by a job that fails, with a webhook',
  'kinds of references that may be combined': 'shown by a job with clips and images',
  'price of a job': 'told as quoted_token_cost when a job is created',
};

/** Reads the answers: which open points they settle, and how. */
export function openPointsIn(answers: Answers): OpenPoint[] {
  const { models, unknownJob, voices, characters, character, unnamedCharacter, integration } = answers;
  const list = (point: string, seen: Seen, { noun, by }: { readonly noun: string; readonly by: string }) =>
    settledBy({ point, by, seen }, listPlaceOf(seen.body, noun));
  const modelRecords = recordsIn(models.body, 'models');
  return [
    settledBy(
      { point: 'error envelope', by: 'GET /v1/jobs/{unknown id}', seen: unknownJob },
      codePlaceOf(unknownJob.body),
    ),
    settledBy({ point: 'header of the request id', by: 'GET /v1/models' }, requestIdHeaderOf(models)),
    list('list of models', models, { noun: 'models', by: 'GET /v1/models' }),
    list('list of voices', voices, { noun: 'voices', by: 'GET /v1/voices' }),
    list('list of characters', characters, { noun: 'characters', by: 'GET /v1/characters' }),
    settledBy({ point: 'fields of a model', by: 'GET /v1/models' }, namesOfFields(modelRecords)),
    settledBy(
      { point: 'maxPromptChars of the models', by: 'GET /v1/models' },
      valuesOf(modelRecords, 'maxPromptChars'),
    ),
    settledBy({ point: 'aspect ratios of a video model', by: 'GET /v1/models' }, ratiosOf(modelRecords)),
    settledBy({ point: 'fields of a voice', by: 'GET /v1/voices' }, namesOfFields(recordsIn(voices.body, 'voices'))),
    characterPoint('fields of a character', characters, namesOfFields(recordsIn(characters.body, 'characters'))),
    characterPoint('place of a character record', characters, character && recordPlace(character.body, 'character')),
    settledBy(
      { point: 'code for a character without a name', by: 'POST /v1/characters', seen: unnamedCharacter },
      unnamedCharacter.status === 400 ? errorCodeIn(unnamedCharacter.body) : undefined,
    ),
    settledBy({ point: 'integration data', by: 'GET /api/service/developers/docs.json' }, topFieldsOf(integration)),
    ...Object.entries(UNSEEN).map(([point, found]) => ({ point, settled: false, found })),
  ];
}

function settledBy(
  { point, by, seen }: { readonly point: string; readonly by: string; readonly seen?: Seen },
  found: unknown,
): OpenPoint {
  if (found !== undefined) return { point, settled: true, found, by };
  return {
    point,
    settled: false,
    found: seen?.status === 403 ? 'the key may not ask' : 'the answer does not tell',
    by,
  };
}

function characterPoint(point: string, { status, body }: Seen, found: unknown): OpenPoint {
  const by = 'GET /v1/characters';
  if (found !== undefined) return { point, settled: true, found, by };
  const isEmpty = status === 200 && recordsIn(body, 'characters').length === 0;
  return { point, settled: false, found: isEmpty ? 'no character is registered' : 'the answer does not tell', by };
}

const CODE_PLACES: readonly (readonly [place: string, read: (body: Fields) => unknown])[] = [
  ['error.code', ({ error }) => (isFields(error) ? error.code : undefined)],
  ['error', ({ error }) => error],
  ['code', ({ code }) => code],
  ['data.code', ({ data }) => (isFields(data) ? data.code : undefined)],
  ['errors[0].code', ({ errors }) => (Array.isArray(errors) && isFields(errors[0]) ? errors[0].code : undefined)],
  ['detail.code', ({ detail }) => (isFields(detail) ? detail.code : undefined)],
];

/** Where the code of an error is. */
function codePlaceOf(body: unknown): string | undefined {
  if (!isFields(body)) return undefined;
  return CODE_PLACES.find(([, read]) => typeof read(body) === 'string')?.[0];
}

function errorCodeIn(body: unknown): unknown {
  if (!isFields(body)) return undefined;
  return CODE_PLACES.map(([, read]) => read(body)).find((code) => typeof code === 'string');
}

/** Where a list is: `data.models`, `data.items`, `data`, `the body`; `by id` for an object in place of a list. */
function listPlaceOf(body: unknown, noun: string): string | undefined {
  if (Array.isArray(body)) return 'the body';
  if (!isFields(body)) return undefined;
  const { data } = body;
  if (Array.isArray(data)) return 'data';
  if (!isFields(data)) return undefined;
  const name = [noun, 'items', 'results'].find((field) => typeof data[field] === 'object' && data[field] !== null);
  if (name === undefined) return undefined;
  return `data.${name}${Array.isArray(data[name]) ? '' : ', an object by id'}`;
}

/** The records of a list, wherever it is. */
export function recordsIn(body: unknown, noun: string): Fields[] {
  const data = isFields(body) ? (body.data ?? body) : body;
  const list = isFields(data) ? (data[noun] ?? data.items ?? data.results) : data;
  const records = Array.isArray(list) ? list : isFields(list) ? Object.values(list) : [];
  return records.filter(isFields);
}

/** Where a record is: `data.character` or `data`. */
function recordPlace(body: unknown, noun: string): string | undefined {
  if (!isFields(body)) return undefined;
  const { data } = body;
  if (!isFields(data)) return `the body${isFields(body[noun]) ? `'s field ${noun}` : ''}`;
  return isFields(data[noun]) ? `data.${noun}` : 'data';
}

const REQUEST_ID = /^(x-)?(service-)?(request|correlation|trace)-?id$/;

function requestIdHeaderOf({ headers }: Seen): string | undefined {
  return [...headers.keys()].find((name) => REQUEST_ID.test(name));
}

function namesOfFields(records: readonly Fields[]): string[] | undefined {
  return records.length === 0 ? undefined : [...new Set(records.flatMap((record) => Object.keys(record)))];
}

/** The values of a field, by the record's alias. */
function valuesOf(records: readonly Fields[], field: string): Record<string, unknown> | undefined {
  const found = records.filter((record) => record[field] !== undefined);
  return found.length === 0 ? undefined : Object.fromEntries(found.map((record) => [aliasOf(record), record[field]]));
}

function ratiosOf(records: readonly Fields[]): Record<string, unknown> | undefined {
  const videos = records.filter((record) => /video/.test(`${aliasOf(record)} ${record.kind} ${record.mediaType}`));
  return valuesOf(videos, 'aspectRatios') ?? valuesOf(videos, 'aspect_ratios') ?? valuesOf(videos, 'ratios');
}

/** The alias of a model's record, under whichever name. */
export function aliasOf(record: Fields): string {
  const alias = ['alias', 'id', 'model', 'name']
    .map((field) => record[field])
    .find((value) => typeof value === 'string');
  return String(alias ?? '?');
}

function topFieldsOf({ status, body }: Seen): string[] | undefined {
  if (status !== 200 || !isFields(body)) return undefined;
  return Object.keys(isFields(body.data) ? body.data : body);
}
