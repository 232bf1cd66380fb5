// Real SQLite in memory, with the form of a Durable Object's.
import { DatabaseSync } from 'node:sqlite';
import type { SqlStorageLike } from '../../src/store/group-table.js';

/** Opens an empty database. */
export function openSql(): SqlStorageLike {
  const database = new DatabaseSync(':memory:');
  return {
    exec(query, ...values) {
      if (values.length === 0 && !query.startsWith('SELECT')) {
        database.exec(query);
        return { toArray: () => [] };
      }
      const rows = database.prepare(query).all(...values) as ReturnType<ReturnType<SqlStorageLike['exec']>['toArray']>;
      return { toArray: () => rows };
    },
  };
}
