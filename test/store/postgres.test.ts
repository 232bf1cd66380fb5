// The example of a store on Postgres, on a real one. Its client comes with the packages of DBOS.

import { expect, test } from 'vitest';
import { createTables, postgresStore, sweep } from '../../examples/postgres-store.js';
import { checkStore } from '../../src/sandbox/index.js';
import { postgresPrograms, startPostgres } from '../durable/dbos/postgres.js';
import { enginePackage, whyNoEngine } from '../durable/engine-packages.js';

interface Pg {
  readonly default: {
    Pool: new (
      options: object,
    ) => {
      query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
      on(event: 'error', listener: () => void): unknown;
      end(): Promise<void>;
    };
  };
}

const programs = postgresPrograms();

test.skipIf(whyNoEngine('dbos') !== undefined || programs === undefined)(
  'a store on Postgres keeps the contract, and a sweep leaves nothing of what is over (real time)',
  async () => {
    const { default: pg } = await enginePackage<Pg>('dbos', 'pg');
    const server = await startPostgres(programs ?? '');
    const pool = new pg.Pool({ connectionString: server.url.replace(/\/videos$/, '/postgres'), max: 12 });
    pool.on('error', () => {});
    try {
      await createTables(pool);
      await checkStore(() => postgresStore(pool));
      await pool.query(`UPDATE gen_values SET until = now() - interval '1 second'`);
      await sweep(pool);
      const { rows } = await pool.query('SELECT name FROM gen_groups UNION SELECT name FROM gen_values');
      expect(rows).toEqual([]);
    } finally {
      await pool.end();
      await server.close();
    }
  },
  120_000,
);
