// Every store that the tables of cases run over.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fileStore } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { createStore, memoryStore } from '../../src/ledger/stores.js';
import { openGroupTable } from '../../src/store/group-table.js';
import type { Store } from '../../src/store/store.js';
import { openSql } from '../cloudflare/sqlite.js';
import { type RealRedis, startCluster, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { startUpstash } from '../redis/upstash-bridge.js';
import { realTool } from '../sandbox-doors/real-tools.js';
import { ownStore } from '../support/own-store.js';

/** A busy machine takes its time; what an outage is, other tests show. */
const PATIENT = { timeoutMs: 60_000 };

/** A store, and how to open it once more, as another process would. */
export interface StoreCase {
  readonly name: string;
  readonly skip?: string | undefined;
  /** Starts what it needs. */
  open(): Promise<OpenStore>;
}

export interface OpenStore {
  /** The store as one more process has it. */
  another(): Store;
  /** Whether a message reaches other processes. */
  readonly notifies: boolean;
  close(): Promise<void>;
}

function inRedis(name: string, clientOf: (redis: RealRedis) => Parameters<typeof redisStore>[0]): StoreCase {
  return {
    name,
    skip: whyNoRedis(),
    async open() {
      const redis = await startRedis();
      return {
        notifies: true,
        another: () => redisStore(clientOf(redis), PATIENT),
        close: () => redis.close(),
      };
    },
  };
}

function inCluster(
  name: string,
  clientOf: (cluster: Awaited<ReturnType<typeof startCluster>>) => Parameters<typeof redisStore>[0],
): StoreCase {
  return {
    name,
    skip: whyNoRedis(),
    async open() {
      const cluster = await startCluster();
      return { notifies: true, another: () => redisStore(clientOf(cluster), PATIENT), close: () => cluster.close() };
    },
  };
}

/** What the older versions of node-redis have in common. */
interface NodeRedisModule {
  createClient(options: object): Parameters<typeof redisStore>[0] & {
    on(event: string, listener: (error: unknown) => void): unknown;
    connect(): Promise<unknown>;
    quit(): Promise<unknown>;
  };
}

function ofOldClient(module: 'redis-4' | 'redis-5'): StoreCase {
  const path = realTool(module);
  return {
    name: `Redis through node-${module.replace('-', ' ')}`,
    skip: path === undefined ? `${module} is not installed` : whyNoRedis(),
    async open() {
      const redis = await startRedis();
      const { default: loaded } = (await import(pathToFileURL(path ?? '').href)) as { default: NodeRedisModule };
      const client = loaded.createClient({ url: `redis://127.0.0.1:${redis.port}` });
      client.on('error', () => {});
      await client.connect();
      return {
        notifies: true,
        another: () => redisStore(client, PATIENT),
        async close() {
          await client.quit();
          await redis.close();
        },
      };
    },
  };
}

/** The table. */
export const STORES: readonly StoreCase[] = [
  {
    name: 'memory',
    async open() {
      const store = memoryStore();
      return { notifies: true, another: () => store, close: async () => {} };
    },
  },
  {
    name: 'a file',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'gen-stores-'));
      const path = join(folder, 'gen.store');
      const close = async () => {
        await fileStore(path).close();
        rmSync(folder, { recursive: true });
      };
      return { notifies: true, another: () => fileStore(path), close };
    },
  },
  {
    name: 'two functions of the user',
    async open() {
      const store = ownStore();
      return { notifies: false, another: () => store, close: async () => {} };
    },
  },
  {
    name: 'the tables of a Durable Object, in SQLite',
    async open() {
      const groups = openGroupTable(openSql(), () => Date.now());
      const store = createStore({
        read: async (...given) => groups.read(...given),
        write: async (...given) => groups.write(...given),
      });
      return { notifies: false, another: () => ({ ...store }), close: async () => {} };
    },
  },
  inRedis('Redis through ioredis', ({ ioredis }) => ioredis),
  inRedis('Redis through node-redis 6', ({ nodeRedis }) => nodeRedis),
  ofOldClient('redis-5'),
  ofOldClient('redis-4'),
  inCluster('a Redis Cluster through ioredis', ({ ioredis }) => ioredis),
  inCluster('a Redis Cluster through node-redis', ({ nodeRedis }) => nodeRedis),
  {
    name: 'Redis through the HTTP client of Upstash',
    skip: whyNoRedis(),
    async open() {
      const redis = await startRedis();
      const upstash = await startUpstash(redis.ioredis);
      return {
        notifies: false,
        another: () => redisStore(upstash.client(), PATIENT),
        async close() {
          upstash.close();
          await redis.close();
        },
      };
    },
  },
];
