import { createSandbox, type Sandbox } from 'gen-client/sandbox';

/** A service on a port of its own whose first answer is lost, as the tests of all engines use it. */
export interface SlowService {
  readonly sandbox: Sandbox;
  readonly url: string;
  /** The jobs and charges of one run, whose prompt is its name. */
  bill(prompt: string): { jobs: number; charges: number };
  /** The prompts of all creates that reached the service, whatever it answered. */
  sentPrompts(): string[];
  /** Resolves when a create of the run has reached the service. */
  created(prompt: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts it. The first create is done, and its answer dropped after a second; so a process can be killed meanwhile. */
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
    sentPrompts: () =>
      sandbox.requests.flatMap(({ method, body }) =>
        method === 'POST' ? [String(JSON.parse(body ?? '{}').prompt)] : [],
      ),
    async created(prompt) {
      while (!sandbox.requests.some(({ body }) => body?.includes(prompt))) await pause(20);
    },
    close: () => service.close(),
  };
}

/** Waits in real time. */
export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Asks until there is an answer. */
export async function until<T>(ask: () => Promise<T | undefined>, timeoutMs: number): Promise<T> {
  for (const end = performance.now() + timeoutMs; performance.now() < end; ) {
    const answer = await ask().catch(() => {
      return undefined;
    });
    if (answer !== undefined) return answer;
    await pause(250);
  }
  throw new Error(`nothing came within ${timeoutMs} ms`);
}
