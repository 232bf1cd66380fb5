export type { GenProvider } from './models.js';
export { createGen, gen } from './models.js';
export type { GenProviderOptions } from './settings.js';
