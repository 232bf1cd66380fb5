export type { CallKind } from '../../client/run-calls.js';
export type { GenErrorJson } from '../../rules/fate.js';
export type { Recover, RecoverableCode, RecoverRule } from '../../rules/run-state.js';
export type { OutputDestination } from '../storage/destination.js';
export type { ActivityOptions } from './activities.js';
export { createActivities } from './activities.js';
export type {
  Activities,
  ActivityName,
  CloudflareOptions,
  CloudflareStep,
  DbosSteps,
  DurableEngine,
  InngestOptions,
  InngestStep,
  Json,
  RestateContext,
  RestateOptions,
  WorkflowOptions,
} from './engines.js';
export { cloudflareEngine, dbosEngine, inngestEngine, restateEngine, workflowEngine } from './engines.js';
export type { GeneratedJob, GenerateOptions, StoredFile } from './generate.js';
export { generate } from './generate.js';
