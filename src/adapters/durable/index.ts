export type { GenErrorJson } from '../../rules/failure-kind.js';
export type { OutputDestination } from '../storage/destination.js';
export { createActivities } from './activities.js';
export type { Activities, ActivityName, DurableEngine, InngestOptions, InngestStep, Json } from './engines.js';
export { cloudflareEngine, dbosEngine, inngestEngine, restateEngine, workflowEngine } from './engines.js';
export type { GeneratedJob, GenerateOptions } from './generate.js';
export { generate } from './generate.js';
