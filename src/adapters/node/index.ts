export type { FileStore } from './file-store.js';
export { fileStore } from './file-store.js';
export { fromPath } from './from-path.js';
export type { NodeHandler } from './node-handler.js';
export { toNodeHandler } from './node-handler.js';
export type { SavedOutput, SaveOutputOptions } from './save-output.js';
export { saveOutput } from './save-output.js';
