export type { CallKind } from '../resources/run-calls.js';
export type { GenErrorJson } from '../rules/fate.js';
export type { Recover, RecoverableCode, RecoverRule } from '../rules/run-state.js';
export type { OutputDestination } from '../storage/destination.js';
export { createActivities } from './activities.js';
export type { ActivityOptions } from './activity-options.js';
export type { Activities, ActivityName, DurableEngine, Json } from './engine.js';
export type {
  CloudflareOptions,
  CloudflareStep,
  DbosSteps,
  InngestOptions,
  InngestStep,
  RestateContext,
  RestateOptions,
  WorkflowOptions,
} from './engines.js';
export { cloudflareEngine, dbosEngine, inngestEngine, restateEngine, workflowEngine } from './engines.js';
export type { GeneratedJob, StoredFile } from './generate.js';
export { generate } from './generate.js';
export type { GenerateOptions } from './generate-options.js';
