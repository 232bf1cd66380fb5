import { fromPath } from '../../node/index.js';
import type { Fields } from '../../schemas/envelope.js';
import type { Session } from '../session.js';
import { type Row, replaceFiles } from './rows.js';

/** The files of a batch on the service. */
export interface BatchUploads {
  /** The params of a row with upload ids in place of its files. A file that several rows name is uploaded once. */
  resolve(row: Row): Promise<Fields>;
  /** The uploads that were made. */
  ids(): Promise<readonly string[]>;
}

/** Uploads files when the first row needs them. */
export function createBatchUploads(session: Session): BatchUploads {
  const uploads = new Map<string, Promise<string>>();
  const upload = (path: string): Promise<string> => {
    const known = uploads.get(path);
    if (known !== undefined) return known;
    const id = session
      .client()
      .uploads.upload(fromPath(path), { signal: session.signal })
      .then(({ upload_id }) => upload_id);
    uploads.set(path, id);
    // The next row that names the file tries again.
    id.catch(() => uploads.delete(path));
    return id;
  };
  return {
    async resolve({ params, files }) {
      const ids = new Map<string, string>();
      for (const { path } of files) ids.set(path, await upload(path));
      return replaceFiles(params, files, ({ path }) => ids.get(path) ?? '');
    },
    async ids() {
      const settled = await Promise.allSettled(uploads.values());
      return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    },
  };
}
