// A store in Postgres, with two tables and two statements. `db` is a Pool of pg, or a PGlite. Each statement is atomic, so the store
// needs no transaction.
import { createStore, type Store } from 'gen-client';

interface Database {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

const TABLES = [
  'CREATE SEQUENCE IF NOT EXISTS gen_versions',
  'CREATE TABLE IF NOT EXISTS gen_groups (name text PRIMARY KEY, version bigint NOT NULL)',
  `CREATE TABLE IF NOT EXISTS gen_values (name text, key text, value text NOT NULL, until timestamptz NOT NULL,
   PRIMARY KEY (name, key))`,
];

const READ = `
SELECT coalesce((SELECT version FROM gen_groups WHERE name = $1), 0)::text AS version,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
  (SELECT coalesce(json_object_agg(key, value), '{}')::text FROM gen_values
   WHERE name = $1 AND key = ANY ($2::text[]) AND until > clock_timestamp()) AS values`;

// A version is the next number of a sequence, so it is never reused. Version 0 means that the group doesn't exist.
const WRITE = `
WITH swapped AS (
  INSERT INTO gen_groups SELECT $1, nextval('gen_versions')
  WHERE $2 = '0' OR EXISTS (SELECT FROM gen_groups WHERE name = $1)
  ON CONFLICT (name) DO UPDATE SET version = excluded.version WHERE gen_groups.version = $2::bigint
  RETURNING name
), deleted AS (
  DELETE FROM gen_values USING swapped WHERE gen_values.name = swapped.name AND key = ANY ($3::text[])
), written AS (
  INSERT INTO gen_values
  SELECT swapped.name, key, value, clock_timestamp() + ttl * interval '1 millisecond'
  FROM swapped, unnest($4::text[], $5::text[], $6::float8[]) AS change (key, value, ttl)
  ON CONFLICT (name, key) DO UPDATE SET value = excluded.value, until = excluded.until
)
SELECT name FROM swapped`;

export function postgresStore(db: Database): Store {
  return createStore({
    async read(group, keys) {
      const [row] = (await db.query(READ, [group, [...keys]])).rows;
      return { version: String(row?.version), nowMs: Number(row?.nowMs), values: JSON.parse(String(row?.values)) };
    },
    async write(group, version, changes) {
      const names = Object.keys(changes);
      const deleted = names.filter((key) => changes[key] === null);
      const set = names.flatMap((key) => (changes[key] ? [{ key, ...changes[key] }] : []));
      const columns = [set.map(({ key }) => key), set.map(({ value }) => value), set.map(({ ttlMs }) => ttlMs)];
      return (await db.query(WRITE, [group, version, deleted, ...columns])).rows.length === 1;
    },
  });
}

/** Creates the tables. */
export async function createTables(db: Database): Promise<void> {
  for (const statement of TABLES) await db.query(statement);
}

/** Deletes expired values. Run it once an hour. */
export async function sweep(db: Database): Promise<void> {
  await db.query('DELETE FROM gen_values WHERE until < now()');
  await db.query(`DELETE FROM gen_groups WHERE NOT EXISTS (SELECT FROM gen_values WHERE name = gen_groups.name)`);
}
