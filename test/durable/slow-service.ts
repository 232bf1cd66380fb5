import { createSandbox, type Sandbox } from 'gen-client/sandbox';

/** A service that loses its first response, for the tests of all engines. */
export interface SlowService {
  readonly sandbox: Sandbox;
  readonly url: string;
  /** Returns the jobs and charges of the run with this prompt. */
  bill(prompt: string): { jobs: number; charges: number };
  /** Returns the bodies of the creates that the service received with a key. */
  creates(key: string): { readonly prompt?: string; readonly webhook_url?: string }[];
  /** Resolves when the service has received a create with the prompt. */
  created(prompt: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the service. It drops its first response after a second, so that a test can kill the process before it arrives. */
export async function slowService(): Promise<SlowService> {
  const sandbox = createSandbox({ jobDurationMs: 6_000, limits: 'off' });
  sandbox.faults.add({ match: { method: 'POST' }, latencyMs: 1000, commitThenDrop: true, times: 1 });
  const service = await sandbox.listen({ port: 0 });
  const jobsOf = (prompt: string) => sandbox.jobs.filter((job) => job.prompt === prompt);
  return {
    sandbox,
    url: service.url,
    bill(prompt) {
      const ids = jobsOf(prompt).map(({ id }) => id);
      const charges = sandbox
        .ledger()
        .entries.filter(({ type, jobId }) => type === 'charge' && ids.includes(jobId ?? ''));
      return { jobs: ids.length, charges: charges.length };
    },
    creates: (key) =>
      sandbox.requests
        .filter(({ method, headers }) => method === 'POST' && headers['idempotency-key'] === key)
        .map(({ body }) => JSON.parse(body ?? '{}')),
    async created(prompt) {
      while (!sandbox.requests.some(({ body }) => body?.includes(prompt))) await pause(20);
    },
    close: () => service.close(),
  };
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Calls `attempt` until it resolves with a value. */
export async function until<T>(attempt: () => Promise<T | undefined>, timeoutMs: number): Promise<T> {
  for (const end = performance.now() + timeoutMs; performance.now() < end; ) {
    const value = await attempt().catch(() => undefined);
    if (value !== undefined) return value;
    await pause(250);
  }
  throw new Error(`no value within ${timeoutMs} ms`);
}
