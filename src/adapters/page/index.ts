export type { GenPage } from './create-page.js';
export { createGenPage } from './create-page.js';
export type { Run, RunState } from './run.js';
