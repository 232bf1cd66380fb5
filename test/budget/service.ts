import { type BudgetOptions, type ClientOptions, GenClient } from '../../src/index.js';
import { ownBudget } from '../support/own-budget.js';
import { errorOf } from '../support/rejection.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';

export const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;

/** Charges and responses of a service. */
export interface ServiceOptions {
  /** The real price of the job with this number. */
  readonly price?: (job: number) => number;
  /** The response to the create of a job. An error is thrown by fetch. */
  readonly answer?: (job: {
    readonly id: string;
    readonly tokens: number;
    readonly number: number;
  }) => Response | Error;
  /** Fields of a polled job. */
  readonly final?: (tokens: number) => object;
}

/** A service that creates one job for each key, and its charges. */
export function openService({ price = () => 12, answer = quoted, final }: ServiceOptions = {}) {
  const jobs = new Map<string, { readonly id: string; readonly tokens: number; readonly number: number }>();
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const { method, url, headers } = new Request(input, init);
    if (method === 'GET') {
      const job = [...jobs.values()].find(({ id }) => url.endsWith(id));
      const shown = { id: job?.id, status: 'completed', ...final?.(job?.tokens ?? 0) };
      return json({ success: true, data: { job: shown } });
    }
    const key = headers.get('idempotency-key') ?? '';
    const number = jobs.size + 1;
    const job = jobs.get(key) ?? { id: `job_${number}`, tokens: price(number), number };
    jobs.set(key, job);
    const answered = answer(job);
    if (answered instanceof Error) throw answered;
    return answered;
  };
  const charged = () => [...jobs.values()].reduce((sum, { tokens }) => sum + tokens, 0);
  return { fetch, charged, jobs };
}

/** The documented response to a create. */
export function quoted({ id, tokens }: { readonly id: string; readonly tokens: number }): Response {
  return json({ success: true, data: { job: { id, status: 'processing' }, quoted_token_cost: tokens } });
}

/** A client on a service, with a budget. */
export function spenderOn(service: ReturnType<typeof openService>, options: BudgetOptions, client: ClientOptions = {}) {
  const budget = ownBudget(options);
  const base = {
    apiKey: freshKey(),
    baseUrl: BASE_URL,
    fetch: service.fetch,
    rateLimit: 'off',
    maxRetries: 0,
  } as const;
  return { budget, client: new GenClient({ ...base, ...client, budget }) };
}

/** Outcome of each call. */
export async function inTurn(count: number, call: (number: number) => Promise<unknown>): Promise<readonly unknown[]> {
  const outcomes: unknown[] = [];
  for (let number = 0; number < count; number++) outcomes.push(await errorOf(call(number)));
  return outcomes;
}
