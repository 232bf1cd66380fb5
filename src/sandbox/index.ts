export type { KeyOptions } from './accounts.js';
export type { AccountChoice, Listening, Sandbox, SandboxSnapshot } from './contract.js';
export type { RateTable } from './documented-limits.js';
export { ConnectionDropped, type FaultMatch, type FaultRule } from './faults.js';
export { sandboxHandlers } from './msw.js';
export type { JobDuration, SandboxOptions } from './options.js';
export type { Outcome } from './outcomes.js';
export type { DeliveryRecord, LedgerEntry, LedgerView, RequestRecord, SandboxJob } from './records.js';
export { createSandbox } from './sandbox.js';
