import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { oneAhead, pieceBytes, streamOf } from '../../runtime/bytes.js';
import { invalidValueMessage } from '../../schemas/format-value.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';

/**
 * Reads a file in pieces, because a Node.js stream needs three times the CPU. Throws at the end if the file was rewritten
 * meanwhile, because the pieces are then a mixture of two versions. If the file was replaced by another one, the open one is
 * still complete.
 */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, undefined> {
  const file = await open(path);
  try {
    const before = await file.stat({ bigint: true });
    const bytes = pieceBytes(Number(before.size));
    for (;;) {
      // Yarn PnP reads nothing without a length.
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(bytes), 0, bytes, null);
      if (bytesRead === 0) break;
      yield buffer.subarray(0, bytesRead);
    }
    const after = await file.stat({ bigint: true });
    if (after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new Error(`"${path}" changed while it was sent. Upload it again.`);
    return undefined;
  } finally {
    await file.close();
  }
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
    throw new GenError(invalidValueMessage('fromPath: path', 'a path or a file URL', given));
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
    stream: () => streamOf(oneAhead(piecesOf(path))),
  };
  return source;
}
