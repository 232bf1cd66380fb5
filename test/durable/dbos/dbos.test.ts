// The example on the real DBOS and a real Postgres.
import { expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { enginePackage, whyNoEngine } from '../engine-packages.js';
import { originOf, startExample, testRuns } from '../engine-runs.js';
import { type Postgres, postgresPrograms, startPostgres } from './postgres.js';

/** The part of DBOS that forks runs and returns their results. */
interface DbosPackage {
  readonly DBOSClient: { create(options: { readonly systemDatabaseUrl: string }): Promise<DbosClient> };
}

interface DbosClient {
  forkWorkflow(id: string, startStep: number): Promise<string>;
  retrieveWorkflow(id: string): { getResult(): Promise<Record<string, unknown>> };
  destroy(): Promise<void>;
}

const programs = whyNoEngine('dbos') === undefined ? postgresPrograms() : undefined;
let postgres: Postgres;
let client: DbosClient;

if (programs === undefined) it.skip('a run in DBOS', () => {});
else
  testRuns(
    'DBOS',
    async (service) => {
      postgres = await startPostgres(programs);
      const port = String(await freePort());
      const origin = originOf(0, port);
      // DBOS recovers only runs of the same version, so both deploys use one version.
      const env = { DATABASE_URL: postgres.url, PORT: port, DBOS__APPVERSION: 'videos-1' };
      const program = await startExample('dbos', 'dbos-workflow', { service, port, env, readyAt: `${origin}/hook` });
      const { DBOSClient } = await enginePackage<DbosPackage>('dbos', '@dbos-inc/dbos-sdk');
      client = await DBOSClient.create({ systemDatabaseUrl: postgres.url });
      return {
        deploy: program.deploy,
        async start(order, prompt) {
          await fetch(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
          const result = () => client.retrieveWorkflow(order).getResult();
          return () => result().catch(({ message }) => ({ message }));
        },
        async close() {
          await client.destroy();
          program.kill();
          await postgres.close();
        },
      };
    },
    ({ service, engine }) => {
      it('returns its paid job if it is forked from an earlier step', async () => {
        const { id } = await (await engine().start('order-4', 'run four'))();
        for (const step of [0, 2]) {
          const fork = await client.forkWorkflow('order-4', step);
          const result = await client.retrieveWorkflow(fork).getResult();
          expect(result).toMatchObject({ id, status: 'completed' });
        }
        expect(service().bill('run four')).toEqual({ jobs: 1, charges: 1 });
      });
    },
  );
