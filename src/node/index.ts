export type { JobRef } from '../resources/output.js';
export type { RestOfOutput } from '../resources/output-reader.js';
export type { OutputCallOptions, OutputClient } from '../resources/output-source.js';
export { fromPath } from './from-path.js';
export type { NodeHandler, NodeHandlerOptions, NodeRequest, NodeResponse, WebHandler } from './node-handler.js';
export { toNodeHandler } from './node-handler.js';
export type { SavedOutput, SaveOutputOptions, SaveProgress } from './save-output.js';
export { saveOutput } from './save-output.js';
