import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { fromPath } from '../node/index.js';
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
  if (stats) throw new UsageError(`"${text}" is no file. Give a file, a URL or an upload id.`);
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
export async function uploadFile(session: Session, path: string) {
  const progress = session.terminal.progress(`Uploading ${basename(path)}`);
  try {
    return await session.client().uploads.upload(fromPath(path), {
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

/** The parameters; local files are uploaded on the way, one after the other. */
export async function referenceParams(
  session: Session,
  slots: readonly ReferenceSlot[],
): Promise<Record<string, unknown>> {
  const params: Record<string, unknown> = {};
  for (const slot of slots) {
    for (const mention of slot.mentions) put(params, slot, await resolveReference(session, mention));
  }
  return params;
}

function put(params: Record<string, unknown>, slot: ReferenceSlot, reference: Reference): void {
  const [name, value] = 'url' in reference ? [slot.urls, reference.url] : [slot.uploads, reference.uploadId];
  const before = params[name];
  params[name] = slot.isSingle ? value : [...(Array.isArray(before) ? before : []), value];
}
