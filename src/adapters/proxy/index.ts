export type { GenProxy } from './create-proxy.js';
export { createGenProxy } from './create-proxy.js';
export type { DefaultInput, ProxyOptions } from './proxy-options.js';
