import type { WaitOptions } from '../waiting/wait-options.js';

/** How `resume` waits. `timeoutMs` is for the store, and then for each job. */
export interface ResumeOptions extends Omit<WaitOptions, 'throwOnFailure'> {}
