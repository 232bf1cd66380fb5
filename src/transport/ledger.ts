// Stores and budgets provide the ledger, so that it isn't bundled with a client without them.
import { LEDGER } from '../rules/options.js';
import type { Budget } from '../schemas/budget.js';
import type { ClientLedger, Core } from './call.js';

export type LedgerCore = Pick<Core, 'config' | 'warn'>;

export type OpenLedger = (core: LedgerCore) => ClientLedger;

interface Carrier {
  readonly [LEDGER]?: OpenLedger;
}

/** Returns a function that finds a call's ledger: undefined if neither the client nor the call has a store or a budget. */
export function ledgerIn(core: LedgerCore): Core['ledger'] {
  const { store, budget } = core.config;
  let ledger: ClientLedger | undefined;
  return (callBudget) => {
    const carrier: (Budget & Carrier) | (object & Carrier) | undefined = store ?? budget ?? callBudget;
    ledger ??= carrier?.[LEDGER]?.(core);
    return carrier && ledger;
  };
}
