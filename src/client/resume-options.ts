import type { WaitOptions } from '../waiting/wait-options.js';

/** Options for `resume`. `timeoutMs` applies to the store, and then to each job. */
export interface ResumeOptions extends Omit<WaitOptions, 'throwOnFailure'> {}
