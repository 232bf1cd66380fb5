import type { GenClient } from '../client.js';

/** A file as the AI SDK hands it over: bytes, base64 text, or an address. */
export type ModelFile =
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string };

/** Where a file goes: under one field as an upload id, under another as a public URL. */
interface Slot {
  readonly uploadField: string;
  readonly urlField: string;
  readonly many: boolean;
}

/** A file and the fields that may hold it. */
export interface PlacedFile {
  readonly file: ModelFile;
  readonly slot: Slot;
}

/** The request fields that name the files, and the uploads that were made for them. */
export interface SentInputs {
  readonly fields: Record<string, unknown>;
  readonly uploadIds: readonly string[];
}

/** The start image (spec: first_frame_url, first_frame_upload_id). */
export const FIRST_FRAME: Slot = single('first_frame');
/** The end image (spec: last_frame_url, last_frame_upload_id). */
export const LAST_FRAME: Slot = single('last_frame');
/** A reference image of an image job (spec: POST /v1/images). */
export const IMAGE_REFERENCE: Slot = {
  uploadField: 'reference_upload_ids',
  urlField: 'reference_image_urls',
  many: true,
};

/** The reference field that fits a file's kind: image, video or audio (spec: POST /v1/videos). */
export function referenceSlot(file: ModelFile): Slot {
  const kind = /^(video|audio)\//.exec(file.mediaType ?? '')?.[1] ?? 'image';
  return { uploadField: `reference_${kind}_upload_ids`, urlField: `reference_${kind}_urls`, many: true };
}

function single(name: string): Slot {
  return { uploadField: `${name}_upload_id`, urlField: `${name}_url`, many: false };
}

/** Uploads what is not yet on the web and says under which fields each file goes. */
export async function sendInputs(
  client: GenClient,
  files: readonly PlacedFile[],
  signal: AbortSignal | undefined,
): Promise<SentInputs> {
  const fields: Record<string, unknown> = {};
  const uploadIds: string[] = [];
  for (const { file, slot } of files) {
    if (file.type === 'url') place(fields, { field: slot.urlField, many: slot.many, value: file.url });
    else {
      const { upload_id } = await client.uploads.upload(bytesOf(file.data), { mimeType: file.mediaType, signal });
      uploadIds.push(upload_id);
      place(fields, { field: slot.uploadField, many: slot.many, value: upload_id });
    }
  }
  return { fields, uploadIds };
}

/** Takes back the uploads of a call that made no job. What cannot be deleted stays: it is private and costs nothing. */
export async function discardInputs(client: GenClient, inputs: SentInputs): Promise<void> {
  await Promise.allSettled(inputs.uploadIds.map((id) => client.uploads.delete(id)));
}

function place(
  fields: Record<string, unknown>,
  entry: { readonly field: string; readonly many: boolean; readonly value: string },
): void {
  const before = fields[entry.field];
  fields[entry.field] = entry.many ? [...(Array.isArray(before) ? before : []), entry.value] : entry.value;
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? Uint8Array.from(atob(data), (char) => char.charCodeAt(0)) : data;
}
