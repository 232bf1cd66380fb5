export type { Store, StoreChanges, StoredValues } from '../../store/store.js';
export type { GenAccountNamespace } from './durable-object-store.js';
export { durableObjectStore } from './durable-object-store.js';
export type { DurableObjectBase, DurableObjectStateLike } from './gen-account.js';
export { GenAccount } from './gen-account.js';
export type { SqlRow, SqlStorageLike, SqlValue } from './group-table.js';
