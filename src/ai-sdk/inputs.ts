/** A file as the AI SDK hands it over: bytes, base64 text, or an address. */
export type ModelFile =
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string };

/** Where a file goes: a file by value under one field, a public URL under another. */
interface InputSlot {
  readonly uploadField: string;
  readonly urlField: string;
  readonly many: boolean;
}

/** A file and the fields that may hold it. */
export interface InputFile {
  readonly file: ModelFile;
  readonly slot: InputSlot;
}

/** The start image. */
export const FIRST_FRAME: InputSlot = single('first_frame');
/** The end image. */
export const LAST_FRAME: InputSlot = single('last_frame');
/** A reference image of an image job. */
export const IMAGE_REFERENCE: InputSlot = {
  uploadField: 'reference_upload_ids',
  urlField: 'reference_image_urls',
  many: true,
};

/** The reference field that fits a file's kind: image, video or audio. */
export function referenceSlot(file: ModelFile): InputSlot {
  const kind = /^(video|audio)\//.exec(file.mediaType ?? '')?.[1] ?? 'image';
  return { uploadField: `reference_${kind}_upload_ids`, urlField: `reference_${kind}_urls`, many: true };
}

function single(name: string): InputSlot {
  return { uploadField: `${name}_upload_id`, urlField: `${name}_url`, many: false };
}

/** The files as fields of a body. The client uploads the Blobs, as it does for every caller. */
export function inputFields(files: readonly InputFile[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const { file, slot } of files) {
    const [field, value] = file.type === 'url' ? [slot.urlField, file.url] : [slot.uploadField, blobOf(file)];
    const before = fields[field];
    fields[field] = slot.many ? [...(Array.isArray(before) ? before : []), value] : value;
  }
  return fields;
}

function blobOf({ data, mediaType }: ModelFile & { readonly type: 'file' }): Blob {
  const bytes = typeof data === 'string' ? Uint8Array.from(atob(data), (char) => char.charCodeAt(0)) : data;
  return new Blob([new Uint8Array(bytes)], { type: mediaType });
}
