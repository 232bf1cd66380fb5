// The package's stores in this process (Redis and Durable Objects as doubles), and a custom store like a user's. For real
// servers, see real-stores.test.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { durableObjectStore, GenAccount } from '../../src/adapters/cloudflare/index.js';
import { fileStore } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { memoryStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';
import { openSql } from '../cloudflare/sqlite.js';
import { redisDouble } from '../redis/redis-double.js';
import { customStore } from '../support/custom-store.js';
import { PATIENT, type StoreCase, testStores } from './store-contract.js';

vi.mock('cloudflare:workers', () => ({ DurableObject: class {}, waitUntil: () => {} }));

function inProcess(name: string, notifies: boolean, start: () => () => Store): StoreCase {
  return { name, open: async () => ({ reopen: start(), notifies, close: async () => {} }) };
}

/** Creates a Durable Object binding whose calls are asynchronous, like those between isolates. */
function openNamespace() {
  const storage = { sql: openSql(), transactionSync: <T>(write: () => T) => write(), setAlarm: () => {} };
  const account = new GenAccount({ storage }, {});
  const stub = {
    read: async (...args: Parameters<GenAccount['read']>) => account.read(...args),
    write: async (...args: Parameters<GenAccount['write']>) => account.write(...args),
  };
  return { idFromName: (name: string) => name, get: () => stub };
}

testStores([
  inProcess('memoryStore', true, () => {
    const store = memoryStore();
    return () => store;
  }),
  {
    name: 'fileStore',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'gen-stores-'));
      const path = join(folder, 'gen.store');
      const close = async () => {
        await fileStore(path).close();
        rmSync(folder, { recursive: true });
      };
      return { notifies: true, reopen: () => fileStore(path), close };
    },
  },
  inProcess('createStore with a Map', false, () => {
    const store = customStore();
    return () => store;
  }),
  inProcess('redisStore with a fake Redis', true, () => {
    const redis = redisDouble();
    return () => redisStore(redis, PATIENT);
  }),
  inProcess('durableObjectStore with a fake binding', false, () => {
    const namespace = openNamespace();
    return () => durableObjectStore(namespace, 'main');
  }),
]);
