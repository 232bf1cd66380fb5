import { createReadStream, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { streamOf } from '../../runtime/bytes.js';
import { mustBe } from '../../schemas/show.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';

/** Bytes in a piece: small enough to show the progress of a small file. */
const PIECE_BYTES = 64 * 1024;

/** Opened with the first piece. A stream of Node's reads one piece ahead, so that the disk works while the network does. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, undefined> {
  yield* createReadStream(path, { highWaterMark: PIECE_BYTES });
  return undefined;
}

/**
 * A file on disk as an upload source. It is read in pieces, never held whole, and read again from its start when the PUT is
 * repeated. The file is first looked at when it is uploaded; one that is missing fails the upload before any call.
 */
export function fromPath(given: string | URL): RereadableSource & { readonly name: string } {
  if (typeof given !== 'string' && !(given instanceof URL))
    throw new GenError(mustBe('fromPath: path', 'a path or a file URL', given));
  const path = typeof given === 'string' ? given : fileURLToPath(given);
  const source = {
    // Absolute, so that another process can open it.
    get [FILE_PATH]() {
      return resolve(path);
    },
    name: basename(path),
    get size() {
      const stats = statSync(path);
      if (stats.isDirectory()) throw new TypeError(`"${path}" is a directory, not a file.`);
      return stats.size;
    },
    // A file that has changed since is uploaded again.
    get lastModified() {
      return statSync(path).mtimeMs;
    },
    stream: () => streamOf(piecesOf(path)),
  };
  return source;
}
