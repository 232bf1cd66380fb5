export type { SharedChanges, SharedStore, SharedValues } from '../../store/store.js';
export type { GenAccountNamespace } from './durable-object-shared.js';
export { durableObjectShared } from './durable-object-shared.js';
export type { DurableObjectBase, DurableObjectStateLike } from './gen-account.js';
export { GenAccount } from './gen-account.js';
export type { SqlRow, SqlStorageLike, SqlValue } from './group-table.js';
