// An in-memory SQLite database with the interface of a Durable Object's.
import { DatabaseSync } from 'node:sqlite';
import { GROUP_TABLES_SQL, type SqlStorageLike } from '../../src/store/group-table.js';

export function openSql(): SqlStorageLike {
  const database = new DatabaseSync(':memory:');
  database.exec(GROUP_TABLES_SQL);
  return {
    exec(query, ...values) {
      const rows = database.prepare(query).all(...values) as ReturnType<ReturnType<SqlStorageLike['exec']>['toArray']>;
      return { toArray: () => rows };
    },
  };
}
