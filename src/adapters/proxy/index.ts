export type { GenProxy, WatchAnswer } from './create-proxy.js';
export { createGenProxy } from './create-proxy.js';
export type {
  AskedUpload,
  DefaultAsk,
  ProxyClient,
  ProxyCreate,
  ProxyOptions,
  ProxyUser,
  ProxyVerb,
} from './proxy-options.js';
