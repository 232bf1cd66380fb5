import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CHUNK_BYTES, type RereadableSource } from '../uploading/upload-source.js';

/** A file on disk, opened afresh each time it is read. */
class PathSource implements RereadableSource {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get name(): string {
    return basename(this.#path);
  }

  get size(): number {
    const stats = statSync(this.#path);
    if (stats.isDirectory()) throw new TypeError(`"${this.#path}" is a directory, not a file.`);
    return stats.size;
  }

  async *chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const file = await open(this.#path);
    try {
      for (;;) {
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(CHUNK_BYTES), 0, CHUNK_BYTES);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }

  stream(): ReadableStream<Uint8Array> {
    const chunks = this.chunks();
    return new ReadableStream(
      {
        async pull(controller) {
          const { done, value } = await chunks.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          await chunks.return(undefined);
        },
      },
      { highWaterMark: 0 },
    );
  }
}

/**
 * A file on disk as an upload source: read in pieces, never held whole, and read again from its start when the PUT is
 * repeated. The file is first looked at when it is uploaded; one that is missing fails the upload before any call.
 */
export function fromPath(path: string | URL): RereadableSource & { readonly name: string } {
  return new PathSource(typeof path === 'string' ? path : fileURLToPath(path));
}
