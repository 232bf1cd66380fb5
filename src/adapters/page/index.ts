export type { GenPage, PageAsk, PageOptions, PageVerb } from './create-page.js';
export { createGenPage } from './create-page.js';
export type { Run, RunError, RunState } from './run.js';
