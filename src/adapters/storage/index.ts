export { StorageError } from '../../errors/index.js';
export type { CopyOutputOptions, StoredOutput } from './copy-output.js';
export { copyOutput } from './copy-output.js';
export type { OutputDestination, OutputSource } from './destination.js';
export type { OutputHandler } from './output-handler.js';
export { createOutputHandler } from './output-handler.js';
export type { R2BucketLike } from './r2.js';
export { r2 } from './r2.js';
export { s3 } from './s3.js';
