export type { GenProxy } from './create-proxy.js';
export { createGenProxy } from './create-proxy.js';
export type { DefaultAsk, ProxyOptions } from './proxy-options.js';
