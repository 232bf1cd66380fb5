import { APIError } from '../../errors/index.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import type { CreatedUpload } from '../../schemas/upload.js';
import { messageOf } from '../errors.js';
import { answerWithin } from '../session.js';
import { firstBytes, type Observe, type Seen } from './observer.js';

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
  const records = recordsIn(models.body, 'models');
  const seen = (point: string, by: string, found: unknown, otherwise = 'the answer does not tell'): OpenPoint => ({
    point,
    settled: found !== undefined,
    found: found ?? otherwise,
    by,
  });
  const ifAsked = ({ status }: Seen) => (status === 403 ? 'the key may not ask' : undefined);
  const ofModel = (point: string, found: unknown) => seen(point, 'GET /v1/models', found);
  const ofList = (noun: string, answer: Seen) =>
    seen(`list of ${noun}`, `GET /v1/${noun}`, listPlaceOf(answer.body, noun), ifAsked(answer));
  const characterRecords = recordsIn(characters.body, 'characters');
  const hasNone = characters.status === 200 && characterRecords.length === 0;
  const ofCharacter = (point: string, found: unknown) =>
    seen(point, 'GET /v1/characters', found, hasNone ? 'no character is registered' : undefined);
  const unnamedCode = unnamedCharacter.status === 400 ? errorCodeIn(unnamedCharacter.body) : undefined;
  return [
    seen('error envelope', 'GET /v1/jobs/{unknown id}', codePlaceOf(unknownJob.body), ifAsked(unknownJob)),
    ofModel('header of the request id', requestIdHeaderOf(models)),
    ofList('models', models),
    ofList('voices', voices),
    ofList('characters', characters),
    ofModel('fields of a model', namesOfFields(records)),
    ofModel('maxPromptChars of the models', valuesOf(records, 'maxPromptChars')),
    ofModel('aspect ratios of a video model', ratiosOf(records)),
    seen('fields of a voice', 'GET /v1/voices', namesOfFields(recordsIn(voices.body, 'voices'))),
    ofCharacter('fields of a character', namesOfFields(characterRecords)),
    ofCharacter('place of a character record', character && recordPlace(character.body, 'character')),
    seen('code for a character without a name', 'POST /v1/characters', unnamedCode, ifAsked(unnamedCharacter)),
    seen(
      'integration data',
      'GET /api/service/developers/docs.json',
      integration.status === 200 ? fieldNames(integration.body) : undefined,
    ),
    ...Object.entries(UNSEEN).map(([point, found]) => ({ point, settled: false, found })),
  ];
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

/** A page of another site, as a browser names it. */
const ORIGIN = 'https://gen-client-doctor.example';
/** The smallest PNG: one pixel. */
const PNG = Uint8Array.from(
  atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='),
  (char) => char.charCodeAt(0),
);
const PROBE_TIMEOUT_MS = 15_000;
const MOST_PROBE_BYTES = 64 * 1024;

/** What an upload that is never used shows. Each point with how it is seen. */
const POINTS = {
  create: ['answer to the first upload step', 'POST /v1/uploads'],
  headers: ['headers of the PUT of an upload', 'POST /v1/uploads'],
  cors: ['CORS of direct_upload_url', 'OPTIONS direct_upload_url, with an Origin'],
  key: ['whether the PUT of an upload needs the key', 'PUT direct_upload_url, without the key'],
  deletion: ['answer to the deletion of an upload', 'DELETE /v1/uploads/{id}'],
} as const;

type Findings = Partial<Record<keyof typeof POINTS, unknown>>;

/** How the upload is reached beside the client. */
interface UploadProbe {
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}

/** Creates an upload of one pixel, asks its URL what it allows, and deletes it. It costs no token. */
export async function openPointsOfUpload(observe: Observe, probe: UploadProbe): Promise<OpenPoint[]> {
  let upload: CreatedUpload | undefined;
  const seen = await observe(async (client, options) => {
    const params = { file_name: 'doctor.png', mime_type: 'image/png', file_size: PNG.length, upload_type: 'IMAGE' };
    upload = await client.uploads.create(params as Parameters<typeof client.uploads.create>[0], options);
  });
  if (upload === undefined) return pointsOf({}, whyNot(seen));
  const found: Findings = { create: fieldNames(seen.body), headers: Object.keys(upload.headers) };
  try {
    found.cors = await corsOf(upload, probe);
    found.key = await needsKey(upload, probe);
  } finally {
    const { upload_id: id } = upload;
    const deleted = await observe((client, options) => client.uploads.delete(id, options));
    if (deleted.status !== undefined && deleted.error === undefined)
      found.deletion = fieldNames(deleted.body) ?? 'no body';
  }
  return pointsOf(found, 'the response does not show it');
}

function pointsOf(found: Findings, otherwise: string): OpenPoint[] {
  return Object.entries(POINTS).map(([name, [point, by]]) => {
    const value = found[name as keyof typeof POINTS];
    return { point, settled: value !== undefined, found: value ?? otherwise, by };
  });
}

function whyNot({ status, error }: Seen): string {
  if (APIError.isInstance(error) && error.code === 'scope_missing') return 'the key may not create uploads';
  return status === undefined ? messageOf(error) : `the upload was answered with ${status}`;
}

/** What a page of another site may do, by the answer to the preflight of its PUT. */
async function corsOf({ direct_upload_url: url, headers }: CreatedUpload, probe: UploadProbe): Promise<unknown> {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const asked = {
    origin: ORIGIN,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': names.sort().join(','),
  };
  const response = await ask(url, probe, { method: 'OPTIONS', headers: asked });
  if (response === undefined) return undefined;
  const allowed = response.headers.get('access-control-allow-origin');
  const methods = response.headers.get('access-control-allow-methods') ?? '';
  if (!response.ok || allowed === null) return `pages are refused (${response.status})`;
  const isAllowed = [ORIGIN, '*'].includes(allowed) && /\bPUT\b|\*/.test(methods);
  return isAllowed ? `pages may PUT (${allowed})` : `pages are refused (allowed: ${allowed} ${methods})`;
}

/** Whether the PUT is taken without the key. */
async function needsKey({ direct_upload_url: url, headers }: CreatedUpload, probe: UploadProbe): Promise<unknown> {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  if (names.includes('authorization')) return 'no: the headers of the upload carry their own authorization';
  const response = await ask(url, probe, { method: 'PUT', headers, body: PNG });
  if (response === undefined) return undefined;
  if (response.ok) return 'no';
  return REFUSALS.includes(response.status) ? `yes (${response.status} without it)` : undefined;
}

async function ask(url: string, { fetch, signal }: UploadProbe, init: RequestInit): Promise<Response | undefined> {
  try {
    return await answerWithin(PROBE_TIMEOUT_MS, signal, async (signal) => {
      const response = await fetch(url, { ...init, redirect: 'manual', signal });
      await firstBytes(response, MOST_PROBE_BYTES);
      return response;
    });
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

const REFUSALS: readonly number[] = [401, 403];

/** The names of what an answer holds: of its `data`, where that is an object. */
function fieldNames(body: unknown): string[] | undefined {
  if (!isFields(body)) return undefined;
  return Object.keys(isFields(body.data) ? body.data : body);
}
