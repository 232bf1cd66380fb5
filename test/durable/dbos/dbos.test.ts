// The example, run by the real DBOS on a real Postgres.
import { expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { enginePackage, whyNoEngine } from '../engine-packages.js';
import { jsonAt, startExample, testRuns } from '../engine-runs.js';
import { type Postgres, postgresPrograms, startPostgres } from './postgres.js';

/** The part of its package that forks a run. */
interface DbosPackage {
  readonly DBOSClient: {
    create(options: { readonly systemDatabaseUrl: string }): Promise<{
      forkWorkflow(id: string, startStep: number): Promise<string>;
      retrieveWorkflow(id: string): { getResult(): Promise<unknown> };
      destroy(): Promise<void>;
    }>;
  };
}

const programs = whyNoEngine('dbos') === undefined ? postgresPrograms() : undefined;
let postgres: Postgres;

if (programs === undefined) it.skip('a run in DBOS', () => {});
else
  testRuns(
    'DBOS',
    async (service) => {
      postgres = await startPostgres(programs);
      const port = String(await freePort());
      const origin = `http://127.0.0.1:${port}`;
      // DBOS recovers the runs of its own version only: here a deploy keeps the version.
      const env = { DATABASE_URL: postgres.url, ORIGIN: origin, PORT: port, DBOS__APPVERSION: 'videos-1' };
      const program = await startExample('dbos', 'dbos-workflow.ts', service, { env, answersAt: `${origin}/hook` });
      return {
        restart: program.restart,
        get isNextVersion() {
          return program.isNextVersion;
        },
        async start(order, prompt) {
          await fetch(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
          return () => jsonAt(`${origin}/?order=${order}`);
        },
        async close() {
          program.kill();
          await postgres.close();
        },
      };
    },
    ({ service, engine }) => {
      it('finds its job when it is forked, from any step, and pays for none', async () => {
        const { DBOSClient } = await enginePackage<DbosPackage>('dbos', '@dbos-inc/dbos-sdk');
        const client = await DBOSClient.create({ systemDatabaseUrl: postgres.url });
        try {
          const { id } = await (await engine().start(4, 'run four'))();
          for (const step of [0, 2]) {
            const fork = await client.forkWorkflow('order-4', step);
            const result = await client.retrieveWorkflow(fork).getResult();
            expect(result).toMatchObject({ id, status: 'completed' });
          }
          expect(service().bill('run four')).toEqual({ jobs: 1, charges: 1 });
        } finally {
          await client.destroy();
        }
      });
    },
  );
