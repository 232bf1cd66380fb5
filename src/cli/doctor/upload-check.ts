import { APIError } from '../../errors/index.js';
import { systemClock } from '../../runtime/clock.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import type { CreatedUpload } from '../../schemas/upload.js';
import { messageOf } from '../wording.js';
import { firstBytes, type Observe, type Seen } from './observer.js';
import type { OpenPoint } from './open-points.js';

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
export interface UploadProbe {
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
  const response = await ask(url, probe, {
    method: 'OPTIONS',
    headers: {
      origin: ORIGIN,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': Object.keys(headers)
        .map((name) => name.toLowerCase())
        .sort()
        .join(','),
    },
  });
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
  return response.isRefused ? `yes (${response.status} without it)` : undefined;
}

interface UploadAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly isRefused: boolean;
  readonly headers: Headers;
}

async function ask(url: string, { fetch, signal }: UploadProbe, init: RequestInit): Promise<UploadAnswer | undefined> {
  const late = new AbortController();
  const cancel = systemClock.after(PROBE_TIMEOUT_MS, () => late.abort());
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.any([signal, late.signal]) });
    await firstBytes(response, MOST_PROBE_BYTES);
    const { ok, status, headers } = response;
    return { ok, status, headers, isRefused: REFUSALS.includes(status) };
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    cancel();
  }
}

const REFUSALS: readonly number[] = [401, 403];

function fieldNames(body: unknown): string[] | undefined {
  const data: Fields | undefined = isFields(body) ? (isFields(body.data) ? body.data : body) : undefined;
  return data && Object.keys(data);
}
