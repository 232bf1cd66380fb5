import { type BudgetOptions, type ClientOptions, GenClient } from '../../src/index.js';
import { errorOf } from '../support/rejection.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';

export const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;

/** Prices and responses of the fake service. */
export interface ServiceOptions {
  /** Returns the price of the nth job. */
  readonly price?: (job: number) => number;
  /** Returns the response to a job's create, or an error for fetch to throw. */
  readonly respond?: (job: {
    readonly id: string;
    readonly tokens: number;
    readonly number: number;
  }) => Response | Error;
  /** Returns additional fields of a polled job. */
  readonly polledFields?: (tokens: number) => object;
}

/** Opens a fake service that creates one job per key. */
export function openService({ price = () => 12, respond = quoted, polledFields }: ServiceOptions = {}) {
  const jobs = new Map<string, { readonly id: string; readonly tokens: number; readonly number: number }>();
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const { method, url, headers } = new Request(input, init);
    if (method === 'GET') {
      const job = [...jobs.values()].find(({ id }) => url.endsWith(id));
      const fields = polledFields?.(job?.tokens ?? 0);
      return json({ success: true, data: { job: { id: job?.id, status: 'completed', ...fields } } });
    }
    const key = headers.get('idempotency-key') ?? '';
    const number = jobs.size + 1;
    const job = jobs.get(key) ?? { id: `job_${number}`, tokens: price(number), number };
    jobs.set(key, job);
    const response = respond(job);
    if (response instanceof Error) throw response;
    return response;
  };
  const chargedTokens = () => [...jobs.values()].reduce((sum, { tokens }) => sum + tokens, 0);
  return { fetch, chargedTokens, jobs };
}

/** Returns the documented response to a create. */
export function quoted({ id, tokens }: { readonly id: string; readonly tokens: number }): Response {
  return json({ success: true, data: { job: { id, status: 'processing' }, quoted_token_cost: tokens } });
}

/** Creates a client of the service with a budget. */
export function clientWithBudget(
  service: ReturnType<typeof openService>,
  options: BudgetOptions,
  client: ClientOptions = {},
) {
  const budget = scopedBudget(options);
  const base = {
    apiKey: freshKey(),
    baseUrl: BASE_URL,
    fetch: service.fetch,
    rateLimit: 'off',
    maxRetries: 0,
  } as const;
  return { budget, client: new GenClient({ ...base, ...client, budget }) };
}

/** Runs calls one at a time. Returns each call's error, or undefined. */
export async function runInSequence(
  count: number,
  call: (number: number) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const outcomes: unknown[] = [];
  for (let number = 0; number < count; number++) outcomes.push(await errorOf(call(number)));
  return outcomes;
}
