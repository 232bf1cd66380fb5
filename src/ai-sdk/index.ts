export type { GenProviderOptions } from './call-options.js';
export type { GenProvider, GenProviderSettings } from './provider.js';
export { createGen, gen } from './provider.js';
