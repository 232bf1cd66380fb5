import type { OutputVersion } from './output.js';
import { type OutputReader, RestartRequired } from './output-reader.js';
import type { JobFile } from './output-source.js';

/** One version of a file, on its way to a target. */
export class OutputBody {
  readonly version: OutputVersion;
  readonly #reader: OutputReader;
  #failure: { readonly reason: unknown } | undefined;

  constructor(reader: OutputReader, version: OutputVersion) {
    this.version = version;
    this.#reader = reader;
  }

  /** Why the file could not be read, if that is what went wrong. */
  get failure(): { readonly reason: unknown } | undefined {
    return this.#failure;
  }

  /** The next bytes. Undefined after the last one. */
  async next(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await this.#reader.read();
    } catch (reason) {
      this.#failure = { reason };
      throw reason;
    }
  }
}

/** A place that a file is copied to: a path, or an object of a store. */
export interface CopyTarget<T> {
  /** If true, `put` needs the size. The file is read twice if the service does not say it. */
  readonly needsSize: boolean;
  /** What the file of the job is, if it is there. Throws if another file is there that must stay. */
  find(): Promise<T | undefined>;
  /** Stores the body whole, or nothing. */
  put(body: OutputBody): Promise<T>;
  /** Resolves if a failed `put` is to be tried again. Throws otherwise. */
  afterFailure(error: unknown, body: OutputBody): Promise<void>;
}

/** Copies the file of a job. Starts over if the file changes on the way, and if the target asks for it. */
export async function copyFile<T>(file: JobFile<never>, target: CopyTarget<T>): Promise<T> {
  let reader = file.reader();
  try {
    for (;;) {
      const found = await target.find();
      if (found !== undefined) return found;
      const body = await file.explained(() => openBody(reader, target.needsSize));
      try {
        return await target.put(body);
      } catch (error) {
        const { failure } = body;
        if (failure?.reason instanceof RestartRequired) continue;
        reader.cancel();
        file.signal?.throwIfAborted();
        if (failure) await file.explained(() => Promise.reject(failure.reason));
        await target.afterFailure(error, body);
        reader = file.reader();
      }
    }
  } finally {
    reader.cancel();
  }
}

async function openBody(reader: OutputReader, needsSize: boolean): Promise<OutputBody> {
  const opened = await reader.fromStart(async (version) => ({
    version,
    sizeBytes: version.sizeBytes ?? (needsSize ? await countBytes(reader) : undefined),
  }));
  const wasRead = opened.version.sizeBytes !== opened.sizeBytes;
  return new OutputBody(reader, wasRead ? await reader.open(opened.sizeBytes) : opened.version);
}

async function countBytes(reader: OutputReader): Promise<number> {
  let count = 0;
  for (let bytes = await reader.read(); bytes; bytes = await reader.read()) count += bytes.length;
  return count;
}
