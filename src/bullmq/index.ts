export type { DefaultVideoModel } from '../catalog.js';
export type { CallKind } from '../resources/run-calls.js';
export type { JobRunState } from '../rules/run-state.js';
export type { QueueLocation } from './connection.js';
export type { GenQueue } from './gen-queue.js';
export { createGenQueue } from './gen-queue.js';
export type { GenWorker } from './gen-worker.js';
export { createGenWorker } from './gen-worker.js';
export type {
  GenJobData,
  GenJobProgress,
  GenJobResult,
  GenQueueJob,
  KeptFile,
  StoredRun,
  Trouble,
} from './job-data.js';
export type { EnqueueOptions, GenQueueOptions } from './queue-options.js';
export type { GenWorkerOptions } from './worker-options.js';
