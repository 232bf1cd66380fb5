export type { DefaultVideoModel } from '../../catalog.js';
export type { CallKind } from '../../client/run-calls.js';
export type { JobRunState } from '../../rules/run-state.js';
export type {
  GenJobData,
  GenJobProgress,
  GenJobResult,
  GenQueueJob,
  KeptFile,
  StoredRun,
  Trouble,
} from './call-record.js';
export type { QueueLocation } from './connection.js';
export type { EnqueueOptions, GenQueue, GenQueueOptions } from './gen-queue.js';
export { createGenQueue } from './gen-queue.js';
export type { GenWorker, GenWorkerOptions } from './gen-worker.js';
export { createGenWorker } from './gen-worker.js';
