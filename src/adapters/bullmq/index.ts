export type { GenJobResult, GenQueueJob } from './call-record.js';
export type { GenQueue, GenQueueOptions } from './gen-queue.js';
export { createGenQueue } from './gen-queue.js';
export type { GenWorker, GenWorkerOptions } from './gen-worker.js';
export { createGenWorker } from './gen-worker.js';
