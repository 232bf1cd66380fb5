import { createStore, memoryStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';

/** A store that a client takes for one which outlives its process. */
export function outlivingStore(): Store {
  const { read, write } = memoryStore();
  return createStore({ read, write });
}
