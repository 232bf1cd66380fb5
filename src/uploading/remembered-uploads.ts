// Uploads by the content of their files, in a store that many processes share.
import { sha256Of } from '../runtime/sha256.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { type SharedGroup, updateShared } from '../shared/shared-store.js';
import { recogniseSource } from './source.js';

/** How long an upload is remembered after its last use. If it lives longer, its file is uploaded once more. */
const UPLOAD_REMEMBERED_MS = 30 * 24 * 3_600_000;
/** A store that does not answer holds no call up for longer. */
const STORE_PATIENCE_MS = 2_000;

/** The uploads of one account that all processes know. A store that fails only costs an upload. */
export interface RememberedUploads {
  /** The id of the upload with this content, where there is one. */
  find(key: string): Promise<string | undefined>;
  keep(key: string, id: string): Promise<void>;
  /** The upload is gone. Another one with this content stays. */
  forget(key: string, id: string): Promise<void>;
}

/** Remembers uploads in a store; `warn` is called when it fails. */
export function rememberedUploads(group: SharedGroup, warn: (message: string) => void): RememberedUploads {
  const inTime = async <T>(work: Promise<T>): Promise<T | undefined> => {
    let cancel = () => {};
    const late = new Promise<never>((_, reject) => {
      cancel = group.clock.after(STORE_PATIENCE_MS, () =>
        reject(new Error(`no answer within ${STORE_PATIENCE_MS} ms`)),
      );
    });
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      warn(`uploads.remember: the store failed, so a file may be uploaded again: ${String(error)}`);
      return undefined;
    } finally {
      cancel();
    }
  };
  const entry = (id: string) => ({ value: id, ttlMs: UPLOAD_REMEMBERED_MS });
  return {
    find: (key) =>
      inTime(
        updateShared(group, [key], ({ values: { [key]: id } }) => ({
          changes: id === undefined ? {} : { [key]: entry(id) },
          result: id,
        })),
      ),
    async keep(key, id) {
      await inTime(updateShared(group, [key], () => ({ changes: { [key]: entry(id) }, result: undefined })));
    },
    async forget(key, id) {
      const rule = ({ values }: { readonly values: Readonly<Record<string, string>> }) => ({
        changes: values[key] === id ? { [key]: null } : {},
        result: undefined,
      });
      await inTime(updateShared(group, [key], rule));
    },
  };
}

/** The key of a file: the digest of its content, and what the service takes it for. Undefined for one that can be read once. */
export async function contentKey(source: unknown, params: CreateUploadParams): Promise<string | undefined> {
  const { repeatable, open } = recogniseSource(source);
  if (!repeatable || typeof source === 'function') return undefined;
  return `${await sha256Of(open())}:${params.mime_type}:${params.upload_type}`;
}
