import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { reasonOf } from '../callbacks.js';
import { APIError } from '../errors/index.js';
import { fromPath } from '../node/index.js';
import type { UploadType } from '../schemas/media-type.js';
import type { Upload } from '../schemas/upload.js';
import { describeFile } from '../uploading/file.js';
import type { FileOptions } from '../uploading/upload-options.js';
import { UsageError } from './exit-codes.js';
import type { Session } from './session.js';

/** A reference as the service takes it. */
export type Reference = { readonly url: string } | { readonly uploadId: string };

/** A reference as it stands on the command line, looked at and not yet uploaded. */
export interface Mention {
  readonly text: string;
  readonly kind: 'url' | 'upload' | 'file';
}

/** What `text` is: a public URL, a file on this machine, or else the id of an upload. */
export function mentionOf(text: string): Mention {
  if (/^https?:\/\//i.test(text)) return { text, kind: 'url' };
  const stats = statSync(text, { throwIfNoEntry: false });
  if (stats?.isFile()) return { text, kind: 'file' };
  if (stats) throw new UsageError(`"${text}" is not a file. Give a file, a URL or an upload id.`);
  if (/[/\\.]/.test(text)) throw new UsageError(`"${text}" is not there. Give a file, a URL or an upload id.`);
  return { text, kind: 'upload' };
}

/** Makes a mention usable; a local file is uploaded on the way. */
export async function resolveReference(session: Session, mention: Mention): Promise<Reference> {
  if (mention.kind === 'url') return { url: mention.text };
  if (mention.kind === 'upload') return { uploadId: mention.text };
  const upload = await uploadFile(session, mention.text);
  return { uploadId: upload.upload_id };
}

/** Uploads a local file, showing how far it has come. */
export async function uploadFile(session: Session, path: string, options: FileOptions = {}): Promise<Upload> {
  const progress = session.terminal.progress(`Uploading ${basename(path)}`);
  try {
    return await session.client().uploads.upload(fromPath(path), {
      ...options,
      signal: session.signal,
      onProgress: ({ sentBytes, totalBytes }) => progress.bytes(sentBytes, totalBytes),
    });
  } finally {
    progress.stop();
  }
}

/** References of one kind, with the parameters that take them. */
export interface ReferenceSlot {
  readonly mentions: readonly Mention[];
  /** Takes public URLs. */
  readonly urls: string;
  /** Takes upload ids. */
  readonly uploads: string;
  /** The kind of file it takes. */
  readonly kind: UploadType;
  /** What the file is for, where that has a rule of its own. */
  readonly purpose?: 'character';
  /** Whether the parameter takes one value and not a list. */
  readonly isSingle?: boolean;
}

/** What stands for an upload that does not exist yet. */
const PLANNED: Reference = { uploadId: 'planned' };

/** The parameters as they will be, before anything is uploaded: for the documented rules to look at. */
export function plannedParams(slots: readonly ReferenceSlot[]): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (const slot of slots) {
    for (const { kind, text } of slot.mentions) put(params, slot, kind === 'url' ? { url: text } : PLANNED);
  }
  return params;
}

/** Looks at all local files before a byte moves: their kinds, types and sizes. */
export async function checkFiles(slots: readonly ReferenceSlot[]): Promise<void> {
  for (const { mentions, kind, purpose } of slots) {
    for (const { text } of mentions.filter((mention) => mention.kind === 'file')) {
      await checkFile(text, { kind, purpose });
    }
  }
}

const KIND_NAMES: Readonly<Record<string, string>> = { IMAGE: 'an image', VIDEO: 'a video', AUDIO: 'an audio file' };

/** Looks at a local file. Throws a UsageError that names it. */
export async function checkFile(
  path: string,
  { kind, purpose }: { readonly kind?: UploadType | undefined; readonly purpose?: 'character' | undefined },
): Promise<void> {
  const file = await describeFile(fromPath(path), { purpose }).catch((cause: unknown) => {
    throw new UsageError(`"${path}": ${reasonOf(cause)}`, { cause });
  });
  file.discard();
  const { upload_type: found } = file.params;
  if (kind === undefined || found === kind) return;
  const needed = KIND_NAMES[kind] ?? kind;
  throw new UsageError(`"${path}" is ${KIND_NAMES[found] ?? found}. ${needed.replace(/^a/, 'A')} is needed here.`);
}

/** What references came to. */
export interface UploadedReferences {
  readonly params: Record<string, unknown>;
  /** The uploads that were made on the way. */
  readonly uploadIds: readonly string[];
}

/** The parameters; local files are uploaded on the way, one after the other. */
export async function uploadReferences(session: Session, slots: readonly ReferenceSlot[]): Promise<UploadedReferences> {
  const params: Record<string, unknown> = {};
  const uploadIds: string[] = [];
  try {
    for (const slot of slots) {
      for (const mention of slot.mentions) {
        const reference = await resolveReference(session, mention);
        if (mention.kind === 'file' && 'uploadId' in reference) uploadIds.push(reference.uploadId);
        put(params, slot, reference);
      }
    }
  } catch (error) {
    await deleteUploads(session, uploadIds);
    throw error;
  }
  return { params, uploadIds };
}

/** Whether the service has said for good that there is no job. */
export function isRefusal(error: unknown): boolean {
  return APIError.isInstance(error) && error.status < 500 && error.status !== 409 && error.status !== 429;
}

/** Takes away what was uploaded for a job that is not made. What cannot be deleted stays; the first error is the one to tell. */
export async function deleteUploads(session: Session, uploadIds: readonly string[]): Promise<void> {
  if (session.signal.aborted) return;
  const { uploads } = session.client();
  await Promise.allSettled(uploadIds.map((id) => uploads.delete(id, { signal: session.signal, maxRetries: 0 })));
}

function put(params: Record<string, unknown>, slot: ReferenceSlot, reference: Reference): void {
  const [name, value] = 'url' in reference ? [slot.urls, reference.url] : [slot.uploads, reference.uploadId];
  const before = params[name];
  params[name] = slot.isSingle ? value : [...(Array.isArray(before) ? before : []), value];
}
