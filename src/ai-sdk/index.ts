export type { GenProviderSettings } from './models.js';
export type { GenProvider } from './provider.js';
export { createGen, gen } from './provider.js';
export type { GenProviderOptions } from './provider-options.js';
