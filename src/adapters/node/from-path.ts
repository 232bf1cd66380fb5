import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { oneAhead, pieceBytes, streamOf } from '../../runtime/bytes.js';
import { invalidValueMessage } from '../../schemas/format-value.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';

/**
 * Reads a file in pieces. A Node.js stream would need three times the CPU time. Throws at the end if the file was modified
 * in the meantime. If it was replaced by another file, the open one is still complete.
 */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, undefined> {
  const file = await open(path);
  try {
    const statsBefore = await file.stat({ bigint: true });
    const bytes = pieceBytes(Number(statsBefore.size));
    for (;;) {
      // Yarn PnP needs an explicit length.
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(bytes), 0, bytes, null);
      if (bytesRead === 0) break;
      yield buffer.subarray(0, bytesRead);
    }
    const statsAfter = await file.stat({ bigint: true });
    if (statsAfter.mtimeNs !== statsBefore.mtimeNs || statsAfter.size !== statsBefore.size)
      throw new Error(`"${path}" changed while it was sent. Upload it again.`);
    return undefined;
  } finally {
    await file.close();
  }
}

/**
 * Returns a file on disk as an upload source, which is read in pieces and reread if the PUT is retried. The upload fails
 * before any request if the file is missing, and afterward if the file changes while it is sent.
 *
 * @example
 * const { upload_id } = await client.uploads.upload(fromPath('fox.png'));
 */
export function fromPath(path: string | URL): RereadableSource & { readonly name: string } {
  if (typeof path !== 'string' && !(path instanceof URL))
    throw new GenError(invalidValueMessage('fromPath: path', 'a path or a file URL', path));
  const file = typeof path === 'string' ? path : fileURLToPath(path);
  const source = {
    // Absolute, so that another process can open the file.
    get [FILE_PATH]() {
      return resolve(file);
    },
    name: basename(file),
    get size() {
      const stats = statSync(file);
      if (!stats.isFile()) throw new TypeError(`"${file}" is not a regular file.`);
      return stats.size;
    },
    // Lets a changed file be uploaded again.
    get lastModified() {
      return statSync(file).mtimeMs;
    },
    stream: () => streamOf(oneAhead(piecesOf(file))),
  };
  return source;
}
