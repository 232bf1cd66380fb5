export type { AccountChoice, Listening, Sandbox, SandboxSnapshot } from './contract.js';
export { sandboxHandlers } from './http/msw.js';
export { createSandbox } from './sandbox.js';
export type { KeyOptions } from './service/accounts.js';
export type { RateTable } from './world/documented-limits.js';
export { ConnectionDropped, type FaultMatch, type FaultRule } from './world/faults.js';
export type { JobDuration, SandboxOptions } from './world/options.js';
export type { Outcome } from './world/outcomes.js';
export type { DeliveryRecord, LedgerEntry, LedgerView, RequestRecord, SandboxJob } from './world/records.js';
