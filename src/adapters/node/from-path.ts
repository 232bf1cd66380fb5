import { createReadStream, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { pieceBytes, streamOf } from '../../runtime/bytes.js';
import { mustBe } from '../../schemas/show.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';

/**
 * Opens the file with its first piece. A Node.js stream reads one piece ahead, so the disk and the network work at the
 * same time. Throws at the end if the file was rewritten meanwhile, because the pieces are then a mixture of two
 * versions.
 */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, undefined> {
  const before = await stat(path, { bigint: true });
  yield* createReadStream(path, { highWaterMark: pieceBytes(Number(before.size)) });
  const after = await stat(path, { bigint: true });
  // If the file was replaced by another one, the open one is still complete.
  const isRewritten = after.ino === before.ino && (after.mtimeNs !== before.mtimeNs || after.size !== before.size);
  if (isRewritten) throw new Error(`"${path}" changed while it was sent. Upload it again.`);
  return undefined;
}

/**
 * Returns a file on disk as an upload source. It is read in pieces, and again from its start if the PUT is retried. A
 * missing file fails the upload before any call, and a file that changes while it is sent fails it, too.
 *
 * @example
 * const { upload_id } = await client.uploads.upload(fromPath('fox.png'));
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
      if (!stats.isFile()) throw new TypeError(`"${path}" is not a regular file.`);
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
