import { createStore, memoryStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';

/** Creates a store that clients treat as persistent. */
export function persistentStore(): Store {
  const { read, write } = memoryStore();
  return createStore({ read, write });
}
