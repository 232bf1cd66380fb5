export type { Store } from '../../store/store.js';
export type { GenAccountNamespace } from './durable-object-store.js';
export { durableObjectStore } from './durable-object-store.js';
export { GenAccount } from './gen-account.js';
