import type { GenClient } from '../../client.js';
import { isDone, type JournaledCreate } from '../../rules/journal.js';
import { isUploadField } from '../../rules/references.js';
import { type KeptJournal, readJournal } from '../../shared/journal.js';
import type { Session } from '../session.js';
import type { Row } from './rows.js';

/** What is known of the uploads of a batch. */
interface UploadsOfBatch {
  readonly rows: readonly Row[];
  readonly client: GenClient;
  readonly journal: KeptJournal;
  /** The creates as they stood when the run began. */
  readonly before: ReadonlyMap<string, JournaledCreate>;
}

/** Deletes the files that were uploaded for rows whose jobs have ended in this run. One that another job uses stays. */
export async function deleteUploadsOf(
  { signal }: Session,
  { rows, client, journal, before }: UploadsOfBatch,
): Promise<void> {
  if (signal.aborted || !rows.some(({ params }) => hasFiles(params))) return;
  const creates = await readJournal(journal);
  const keep = new Set(creates.filter((create) => !isDone(create)).flatMap(({ params }) => uploadIds(params)));
  const ended = rows
    .filter(({ params }) => hasFiles(params))
    .flatMap((row) => {
      const own = creates.filter(({ key }) => key === row.key || key.startsWith(`${row.key}:r`));
      return own.filter(({ key }) => !isEnded(before.get(key))).flatMap(({ params }) => given(row, params));
    });
  const ids = [...new Set(ended)].filter((id) => !keep.has(id));
  // What cannot be deleted stays: it is private and costs nothing.
  await Promise.allSettled(ids.map((id) => client.uploads.delete(id, { signal, maxRetries: 0 })));
}

function isEnded(create: JournaledCreate | undefined): boolean {
  return create !== undefined && isDone(create);
}

function hasFiles(params: Row['params']): boolean {
  return Object.entries(params).some(([field, value]) => isUploadField(field) && items(value).some(isFileValue));
}

function uploadIds(params: JournaledCreate['params']): string[] {
  return Object.entries(params).flatMap(([field, value]) =>
    isUploadField(field) ? items(value).filter((id) => typeof id === 'string') : [],
  );
}

/** The ids that the batch made itself: those in the places of the files of a row. */
function given(row: Row, params: JournaledCreate['params']): string[] {
  return Object.entries(row.params).flatMap(([field, value]) => {
    const ids = items(params[field]);
    return items(value).flatMap((item, at) => {
      const id = ids[at];
      return isUploadField(field) && isFileValue(item) && typeof id === 'string' ? [id] : [];
    });
  });
}

function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function isFileValue(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
