import { createReadStream, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { streamOf } from '../../runtime/bytes.js';
import { mustBe } from '../../schemas/show.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';

/** Bytes in a piece: small enough to show the progress of a small file. */
const PIECE_BYTES = 64 * 1024;

/** A file on disk, opened afresh each time it is read. */
class PathSource implements RereadableSource {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Absolute, so that another process can open it. */
  get [FILE_PATH](): string {
    return resolve(this.#path);
  }

  get name(): string {
    return basename(this.#path);
  }

  get size(): number {
    const stats = statSync(this.#path);
    if (stats.isDirectory()) throw new TypeError(`"${this.#path}" is a directory, not a file.`);
    return stats.size;
  }

  /** When the file was last changed, so that a changed file is uploaded again. */
  get lastModified(): number {
    return statSync(this.#path).mtimeMs;
  }

  stream(): ReadableStream<Uint8Array> {
    return streamOf(piecesOf(this.#path));
  }
}

/** Opened with the first piece. A stream of Node's reads one piece ahead, so that the disk works while the network does. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, undefined> {
  yield* createReadStream(path, { highWaterMark: PIECE_BYTES });
  return undefined;
}

/**
 * A file on disk as an upload source. It is read in pieces, never held whole, and read again from its start when the PUT is
 * repeated. The file is first looked at when it is uploaded; one that is missing fails the upload before any call.
 */
export function fromPath(path: string | URL): RereadableSource & { readonly name: string } {
  if (typeof path !== 'string' && !(path instanceof URL))
    throw new GenError(mustBe('fromPath: path', 'a path or a file URL', path));
  return new PathSource(typeof path === 'string' ? path : fileURLToPath(path));
}
