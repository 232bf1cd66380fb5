export { fromPath } from './from-path.js';
export type { SaveClient, SavedOutput, SaveOutputOptions, SaveProgress } from './save-output.js';
export { saveOutput } from './save-output.js';
