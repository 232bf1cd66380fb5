// Every store on its real server: Redis through each client, Postgres, and a Durable Object in workerd.
import { pathToFileURL } from 'node:url';
import { createTables, postgresStore, sweep } from '../../examples/postgres-store.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { createStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';
import { bundle, startWorkerd, whyNoWorkerd } from '../cloudflare/workerd.js';
import { postgresPrograms, startPostgres } from '../durable/dbos/postgres.js';
import { enginePackage, whyNoEngine } from '../durable/engine-packages.js';
import { type RealRedis, startCluster, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { startUpstash } from '../redis/upstash-bridge.js';
import { importPackage, whyNoStores } from '../storage/packages.js';
import { findTool } from '../support/real-tools.js';
import { PATIENT, type StoreCase, testStores } from './store-contract.js';

type Client = Parameters<typeof redisStore>[0];
type Cluster = Awaited<ReturnType<typeof startCluster>>;

/** Returns the case of Redis or a Redis Cluster with one client. */
function inRedis<Server extends RealRedis | Cluster>(
  name: string,
  start: () => Promise<Server>,
  clientOf: (server: Server) => Client,
): StoreCase {
  return {
    name: `redisStore with ${name}`,
    skip: whyNoRedis(),
    async open() {
      const server = await start();
      const client = clientOf(server);
      return { notifies: true, reopen: () => redisStore(client, PATIENT), close: () => server.close() };
    },
  };
}

/** The API that older versions of node-redis share. */
interface NodeRedisModule {
  createClient(options: object): Client & {
    on(event: string, listener: (error: unknown) => void): unknown;
    connect(): Promise<unknown>;
    quit(): Promise<unknown>;
  };
}

function inOldRedis(module: 'redis-4' | 'redis-5'): StoreCase {
  const path = findTool(module);
  return {
    name: `redisStore with node-${module.replace('-', ' ')}`,
    skip: path === undefined ? `${module} is not installed` : whyNoRedis(),
    async open() {
      const redis = await startRedis();
      const { default: loaded } = (await import(pathToFileURL(path ?? '').href)) as { default: NodeRedisModule };
      const client = loaded.createClient({ url: `redis://127.0.0.1:${redis.port}` });
      client.on('error', () => {});
      await client.connect();
      const close = async () => {
        await client.quit();
        await redis.close();
      };
      return { notifies: true, reopen: () => redisStore(client, PATIENT), close };
    },
  };
}

const upstash: StoreCase = {
  name: 'redisStore with @upstash/redis',
  skip: whyNoRedis(),
  async open() {
    const redis = await startRedis();
    const bridge = await startUpstash(redis.ioredis);
    const close = async () => {
      await bridge.close();
      await redis.close();
    };
    return { notifies: false, reopen: () => redisStore(bridge.client(), PATIENT), close };
  },
};

/** A Worker that relays calls to its `durableObjectStore`. */
const RELAY = `
  import { durableObjectStore, GenAccount } from 'gen-client/cloudflare';
  export { GenAccount };
  export default { async fetch(request, { ACCOUNT }) {
    const [method, ...args] = await request.json();
    return Response.json(await durableObjectStore(ACCOUNT, 'main')[method](...args));
  } };`;

const inWorkerd: StoreCase = {
  name: 'durableObjectStore in workerd',
  skip: whyNoWorkerd,
  async open() {
    const script = await bundle({ text: RELAY });
    const durableObjects = { ACCOUNT: { className: 'GenAccount', useSQLite: true } };
    const worker = await startWorkerd({ modules: true, script, durableObjects });
    const relay = async <T>(...call: unknown[]): Promise<T> => {
      const init = { method: 'POST', body: JSON.stringify(call) };
      const response = await worker.dispatchFetch('http://worker.test/', init);
      return (await response.json()) as T;
    };
    const store: Store = { read: (...args) => relay('read', ...args), write: (...args) => relay('write', ...args) };
    return { notifies: false, reopen: () => createStore(store), close: () => worker.dispose() };
  },
};

type Database = Parameters<typeof createTables>[0];

/** Returns the case of the Postgres example. After the tests, a sweep must leave no rows. */
function inPostgres(name: string, skip: string | undefined, connect: () => Promise<[Database, () => unknown]>) {
  return {
    name: `the example of a store on ${name}`,
    skip,
    async open() {
      const [db, disconnect] = await connect();
      await createTables(db);
      const close = async () => {
        await db.query(`UPDATE gen_values SET until = now() - interval '1 second'`);
        await sweep(db);
        const { rows } = await db.query('SELECT name FROM gen_groups UNION SELECT name FROM gen_values');
        await disconnect();
        if (rows.length > 0) throw new Error(`sweep has left ${JSON.stringify(rows)}`);
      };
      return { notifies: false, reopen: () => postgresStore(db), close };
    },
  };
}

const pglite = inPostgres('PGlite', whyNoStores(), async () => {
  const { PGlite } = await importPackage<{ PGlite: new () => Database & { close(): Promise<void> } }>(
    '@electric-sql/pglite',
  );
  const db = new PGlite();
  return [db, () => db.close()];
});

interface Pg {
  readonly default: {
    Pool: new (
      options: object,
    ) => Database & { on(event: 'error', listener: () => void): unknown; end(): Promise<void> };
  };
}

const programs = postgresPrograms();
// The Postgres client is a dependency of DBOS.
const postgres = inPostgres('Postgres', programs ? whyNoEngine('dbos') : 'Postgres is not installed', async () => {
  const { default: pg } = await enginePackage<Pg>('dbos', 'pg');
  const server = await startPostgres(programs ?? '');
  const pool = new pg.Pool({ connectionString: server.url.replace(/\/videos$/, '/postgres'), max: 12 });
  pool.on('error', () => {});
  return [pool, () => pool.end().then(() => server.close())];
});

testStores([
  inRedis('ioredis', startRedis, ({ ioredis }) => ioredis),
  inRedis('node-redis 6', startRedis, ({ nodeRedis }) => nodeRedis),
  inOldRedis('redis-5'),
  inOldRedis('redis-4'),
  inRedis('ioredis and a cluster', startCluster, ({ ioredis }) => ioredis),
  inRedis('node-redis and a cluster', startCluster, ({ nodeRedis }) => nodeRedis),
  upstash,
  inWorkerd,
  pglite,
  postgres,
]);
