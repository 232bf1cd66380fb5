import type { OutputVersion } from './output.js';
import { type OutputReader, RestartRequired } from './output-reader.js';
import type { JobFile } from './output-source.js';

/** The body of one version of a file. */
export class OutputBody {
  readonly version: OutputVersion;
  readonly #reader: OutputReader;
  #failure: { readonly reason: unknown } | undefined;

  constructor(reader: OutputReader, version: OutputVersion) {
    this.version = version;
    this.#reader = reader;
  }

  /** The error of a failed read, if any. */
  get failure(): { readonly reason: unknown } | undefined {
    return this.#failure;
  }

  /** Returns the next bytes, or undefined at the end. */
  async next(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await this.#reader.read();
    } catch (reason) {
      this.#failure = { reason };
      throw reason;
    }
  }
}

/** The target of a copy: a path, or an object in object storage. */
export interface CopyTarget<T> {
  /** If true, `put` needs the size. If the service doesn't report it, the file is read twice. */
  readonly needsSize: boolean;
  /** Returns the job's file if it is already stored. Throws if a different file must not be replaced. */
  find(): Promise<T | undefined>;
  /** Stores the entire body, or nothing. */
  put(body: OutputBody): Promise<T>;
  /** Resolves if the failed `put` should be retried. Otherwise, rejects. */
  afterFailure(error: unknown, body: OutputBody): Promise<void>;
}

/** Copies a job's file. Starts over if the file changes during the copy, or if `afterFailure` resolves. */
export async function copyFile<T>(file: JobFile<never>, target: CopyTarget<T>): Promise<T> {
  let reader = file.reader();
  try {
    for (;;) {
      const existing = await target.find();
      if (existing !== undefined) return existing;
      const body = await file.explainErrors(() => openBody(reader, target.needsSize));
      try {
        return await target.put(body);
      } catch (error) {
        const { failure } = body;
        if (failure?.reason instanceof RestartRequired) continue;
        reader.cancel();
        file.signal?.throwIfAborted();
        if (failure) await file.explainErrors(() => Promise.reject(failure.reason));
        await target.afterFailure(error, body);
        reader = file.reader();
      }
    }
  } finally {
    reader.cancel();
  }
}

async function openBody(reader: OutputReader, needsSize: boolean): Promise<OutputBody> {
  const start = await reader.fromStart(async (version) => ({
    version,
    sizeBytes: version.sizeBytes ?? (needsSize ? await countBytes(reader) : undefined),
  }));
  const wasCounted = start.version.sizeBytes !== start.sizeBytes;
  return new OutputBody(reader, wasCounted ? await reader.open(start.sizeBytes) : start.version);
}

async function countBytes(reader: OutputReader): Promise<number> {
  let count = 0;
  for (let bytes = await reader.read(); bytes; bytes = await reader.read()) count += bytes.length;
  return count;
}
