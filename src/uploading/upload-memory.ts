// Caches the upload of each source object, so that an object is uploaded only once.
import { hexOf } from '../runtime/bytes.js';
import { abortable } from '../runtime/deadline.js';
import { isObject } from '../schemas/envelope.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { isMemory } from './source.js';

export interface UploadUse {
  readonly id: string;
  /** If true, the upload existed before this call. */
  readonly isOld: boolean;
  /**
   * Ends the use. Returns true if the upload should be deleted: this was its last use, no call ended with `used`, and at
   * least one ended with `unused`.
   */
  end(state: 'used' | 'unused'): boolean;
  /** Forgets the upload, because the service no longer has it. */
  forget(): void;
}

export interface KnownUpload {
  readonly id: string;
  readonly params: CreateUploadParams;
}

interface UploadEntry {
  /** Fingerprint of the content at the time of the upload. */
  readonly digest: string;
  upload?: KnownUpload;
  /** Resolves when the upload succeeds or fails. Never rejects. */
  uploading: Promise<unknown>;
  users: number;
  isUsed: boolean;
  isUnused: boolean;
}

export interface Lookup {
  /** Fingerprint from {@link digestOfSource}. If undefined, each call uploads the object. */
  readonly digest: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const MAX_DELETED = 10_000;

/** Cached uploads of one account in this process. */
export class UploadMemory {
  readonly #entries = new WeakMap<object, UploadEntry>();
  readonly #deleted = new Set<string>();
  readonly #waits: boolean;

  /** If `waits` is true, a call may wait for another call's upload of the same object. */
  constructor(waits: boolean) {
    this.#waits = waits;
  }

  /** Returns the upload of an object, if there is one. Waits for an upload in flight. */
  async find(source: unknown, lookup: Lookup): Promise<KnownUpload | undefined> {
    return (await this.#settledEntry(source, lookup))?.upload;
  }

  /** Reuses the upload of an object, or creates one with `upload`. */
  async use(source: unknown, lookup: Lookup, upload: () => Promise<KnownUpload>): Promise<UploadUse> {
    const { digest = '' } = lookup;
    const existingEntry = await this.#settledEntry(source, lookup);
    // Another call may have started an upload while this one waited.
    if (existingEntry === undefined && this.#waits && this.#entryOf(source, lookup.digest))
      return this.use(source, lookup, upload);
    if (existingEntry?.upload) return this.#use(source, existingEntry, true);
    let settle = () => {};
    const uploading = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const entry: UploadEntry = { digest, uploading, users: 0, isUsed: false, isUnused: false };
    if (lookup.digest !== undefined && isObject(source)) this.#entries.set(source, entry);
    try {
      entry.upload = await upload();
      return this.#use(source, entry, false);
    } catch (error) {
      this.#drop(source, entry);
      throw error;
    } finally {
      settle();
    }
  }

  /** Marks an upload as deleted, so that its object is uploaded again. */
  deleted(id: string): void {
    this.#deleted.add(id);
    const [oldest] = this.#deleted;
    if (this.#deleted.size > MAX_DELETED && oldest !== undefined) this.#deleted.delete(oldest);
  }

  #entryOf(source: unknown, digest: string | undefined): UploadEntry | undefined {
    const entry = isObject(source) ? this.#entries.get(source) : undefined;
    return entry?.digest === digest && !this.#deleted.has(entry?.upload?.id ?? '') ? entry : undefined;
  }

  async #settledEntry(source: unknown, { digest, signal }: Lookup): Promise<UploadEntry | undefined> {
    const entry = this.#entryOf(source, digest);
    if (entry !== undefined && entry.upload === undefined && this.#waits) await abortable(entry.uploading, signal);
    const current = this.#entryOf(source, digest);
    return current?.upload ? current : undefined;
  }

  #drop(source: unknown, entry: UploadEntry): void {
    if (isObject(source) && this.#entries.get(source) === entry) this.#entries.delete(source);
  }

  #use(source: unknown, entry: UploadEntry, isOld: boolean): UploadUse {
    const id = entry.upload?.id ?? '';
    entry.users += 1;
    return {
      id,
      isOld,
      end: (state) => {
        entry.users -= 1;
        if (state === 'used') entry.isUsed = true;
        else entry.isUnused = true;
        const isDeletable = entry.users === 0 && entry.isUnused && !entry.isUsed;
        if (isDeletable) this.#drop(source, entry);
        return isDeletable;
      },
      forget: () => this.#drop(source, entry),
    };
  }
}

/**
 * Returns a digest that changes with the content: a digest of bytes, or the size and modification time of a file.
 * Undefined for a function, because each call may return different content.
 */
export async function digestOfSource(source: unknown): Promise<string | undefined> {
  if (!isObject(source)) return undefined;
  if (isMemory(source)) return digestOfSource(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) {
    const { buffer, byteOffset, byteLength } = source;
    if (buffer instanceof ArrayBuffer) return bytesDigest(new Uint8Array(buffer, byteOffset, byteLength));
    return bytesDigest(new Uint8Array(buffer, byteOffset, byteLength).slice()); // WebCrypto rejects shared memory.
  }
  const { size, lastModified }: { readonly size?: unknown; readonly lastModified?: unknown } = source;
  return `${String(size)}:${String(lastModified)}`;
}

async function bytesDigest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hexOf(await crypto.subtle.digest('SHA-256', bytes));
}
