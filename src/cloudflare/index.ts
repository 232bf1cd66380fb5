export type { SharedChanges, SharedStore, SharedValues } from '../shared/shared-store.js';
export type { GenAccountNamespace } from './durable-object-shared.js';
export { durableObjectShared } from './durable-object-shared.js';
export type { DurableObjectBase, DurableObjectStateLike, SqlRow, SqlStorageLike, SqlValue } from './gen-account.js';
export { GenAccount } from './gen-account.js';
