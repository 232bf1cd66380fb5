export { fromPath } from './from-path.js';
export type { NodeHandler, NodeHandlerOptions, NodeRequest, NodeResponse, WebHandler } from './node-handler.js';
export { toNodeHandler } from './node-handler.js';
export type { SaveClient, SavedOutput, SaveOutputOptions, SaveProgress } from './save-output.js';
export { saveOutput } from './save-output.js';
