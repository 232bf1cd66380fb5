// The example of a store on Postgres: in PGlite, and on a server with twelve connections. The server's client comes with DBOS.

import { expect, test } from 'vitest';
import { createTables, postgresStore, sweep } from '../../examples/postgres-store.js';
import { checkStore } from '../../src/sandbox/index.js';
import { postgresPrograms, startPostgres } from '../durable/dbos/postgres.js';
import { enginePackage, whyNoEngine } from '../durable/engine-packages.js';
import { heavy, whyNoStores } from '../storage/heavy.js';

interface Database {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}
interface Pg {
  readonly default: {
    Pool: new (
      options: object,
    ) => Database & { on(event: 'error', listener: () => void): unknown; end(): Promise<void> };
  };
}
interface PGliteModule {
  readonly PGlite: new () => Database & { close(): Promise<void> };
}

const programs = postgresPrograms();

async function keepsTheContract(db: Database): Promise<void> {
  await createTables(db);
  await checkStore(() => postgresStore(db));
  await db.query(`UPDATE gen_values SET until = now() - interval '1 second'`);
  await sweep(db);
  const { rows } = await db.query('SELECT name FROM gen_groups UNION SELECT name FROM gen_values');
  expect(rows).toEqual([]);
}

test.skipIf(whyNoStores() !== undefined)(
  'a store on PGlite keeps the contract, and a sweep leaves nothing of what is over (real time)',
  async () => {
    const { PGlite } = await heavy<PGliteModule>('@electric-sql/pglite');
    const db = new PGlite();
    await keepsTheContract(db).finally(() => db.close());
  },
  120_000,
);

test.skipIf(whyNoEngine('dbos') !== undefined || programs === undefined)(
  'a store on a Postgres server with twelve connections does so, too (real time)',
  async () => {
    const { default: pg } = await enginePackage<Pg>('dbos', 'pg');
    const server = await startPostgres(programs ?? '');
    const pool = new pg.Pool({ connectionString: server.url.replace(/\/videos$/, '/postgres'), max: 12 });
    pool.on('error', () => {});
    try {
      await keepsTheContract(pool);
    } finally {
      await pool.end();
      await server.close();
    }
  },
  120_000,
);
