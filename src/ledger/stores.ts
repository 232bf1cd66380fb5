// The stores of the main entry point.
import * as option from '../rules/options.js';
import { systemClock } from '../runtime/clock.js';
import { memoryStoreOn, type Store } from '../store/store.js';
import { clientStore } from './client-ledger.js';

const STORE = option.optionsOf({
  read: option.requiredCallback,
  write: option.requiredCallback,
  publish: option.callback,
  subscribe: option.callback,
  timeoutMs: option.milliseconds,
});

/**
 * Creates a {@link Store} in the memory of this process. Each call creates an empty one.
 *
 * @example
 * const client = new GenClient({ store: memoryStore() });
 */
export function memoryStore(): Store & Required<Pick<Store, 'publish' | 'subscribe'>> {
  return clientStore(memoryStoreOn(systemClock));
}

/**
 * Creates a {@link Store} on your own database. Test it with `checkStore` from `gen-client/sandbox`. Throws a GenError
 * for an invalid function or option.
 *
 * @example
 * const store = createStore({
 *   read: (group, keys) => database.read(group, keys),
 *   write: (group, version, changes) => database.swap(group, version, changes),
 * });
 * const client = new GenClient({ store });
 */
export function createStore(store: Store): Store {
  option.checkOptions('createStore', STORE, store);
  const { publish, subscribe, timeoutMs } = store;
  return clientStore({
    read: (group, keys) => store.read(group, keys),
    write: (group, version, changes) => store.write(group, version, changes),
    ...(publish && { publish: (topic, message) => publish.call(store, topic, message) }),
    ...(subscribe && { subscribe: (topic, listener) => subscribe.call(store, topic, listener) }),
    timeoutMs,
  } satisfies Store);
}
