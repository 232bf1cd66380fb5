import type { BudgetStore } from '../budget/budget-store.js';
import { steady, systemClock } from '../clock.js';
import { checkAccount } from './cloudflare-options.js';
import { askObject, type GenAccountNamespace } from './namespace.js';

/** Longest wait for one answer, in milliseconds. */
const TIMEOUT_MS = 2_000;

/**
 * Keeps the budgets of any number of Workers and isolates in one {@link GenAccount} object: the `store` of `createBudget`.
 * Use one object for each account of the service, because prices are learned by it. Time is the object's own. An object
 * that does not answer is asked again; after five tries creates reject with a ConnectionError, and nothing is sent. Throws
 * a GenError for an argument that cannot be right.
 *
 * @example
 * const store = durableObjectBudget(env.ACCOUNT, 'main');
 * const budget = createBudget({ maxTokens: 2_000, per: 'day', scope: 'tenant-7', store });
 */
export function durableObjectBudget(namespace: GenAccountNamespace, name: string): BudgetStore {
  checkAccount('durableObjectBudget', namespace, name);
  const options = { namespace, name, timeoutMs: TIMEOUT_MS, clock: steady(systemClock) };
  return { apply: (scope, step) => askObject(options, (stub) => stub.applyBudget(scope, step)) };
}
