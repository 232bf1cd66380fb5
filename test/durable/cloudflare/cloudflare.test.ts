// The example, run by the real engine of Cloudflare Workflows in workerd.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from '../../cloudflare/workerd.js';
import { freePort } from '../../support/free-port.js';
import { type SlowService, slowService, until } from '../slow-service.js';

interface Instance {
  status(): Promise<{ status: string; output?: unknown; error?: unknown }>;
  sendEvent(event: { type: string }): Promise<void>;
}

interface Bindings {
  readonly VIDEOS: { get(id: string): Promise<Instance> };
}

describe.skipIf(whyNoWorkerd !== undefined)('a run in Cloudflare Workflows', () => {
  let service: SlowService;
  let worker: Worker;
  let start: () => Promise<Worker>;
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-workflows-'));

  beforeAll(async () => {
    service = await slowService();
    const script = await bundle({ file: '../../examples/durable/cloudflare-workflow.ts' });
    const port = await freePort();
    start = () =>
      startWorkerd({
        modules: true,
        script,
        compatibilityFlags: ['nodejs_compat'],
        host: '127.0.0.1',
        port,
        bindings: {
          GEN_API_KEY: service.sandbox.apiKey,
          GEN_BASE_URL: service.url,
          GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
          URL: `http://127.0.0.1:${port}/`,
        },
        workflows: { VIDEOS: { name: 'videos', className: 'Video' } },
        workflowsPersist: folder,
      });
    worker = await start();
  });

  afterAll(async () => {
    await worker.dispose();
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const order = async (number: number, prompt: string) => {
    const init = { method: 'POST', body: JSON.stringify({ prompt }) };
    return (await worker.dispatchFetch(`http://worker/?order=order-${number}`, init)).json() as Promise<{ id: string }>;
  };
  /** Locally an instance wakes up after a death when something is sent to it; at Cloudflare its alarm does that. */
  const touch = async (id: string) =>
    (await (await worker.getBindings<Bindings>()).VIDEOS.get(id)).sendEvent({ type: 'touch' });
  const ended = (id: string) =>
    until(async () => {
      const run = await (await worker.getBindings<Bindings>()).VIDEOS.get(id);
      const { status, output, error } = await run.status();
      return status === 'complete' || status === 'errored' ? { status, output, error } : undefined;
    }, 60_000);

  it('has one job and one charge over a lost answer, a lost webhook and the death of the process', async () => {
    service.sandbox.outcomes.next({ webhookCopies: 0 });
    const { id } = await order(1, 'run one');
    await service.created('run one');
    await until(async () => (service.sandbox.requests.length >= 2 ? true : undefined), 10_000);
    // The repeated create is answered, and the run waits for its job.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    for (const pid of childrenOf(process.pid, 'workerd')) process.kill(pid, 'SIGKILL');
    await worker.dispose().catch(() => {});
    worker = await start();
    await touch(id);
    const { status, output } = await ended(id);
    expect(status).toBe('complete');
    expect(output).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1', status: 'completed' }] });
    expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
  }, 90_000);

  it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
    const [quick, refused] = [await order(2, 'run two'), await order(3, '[fail:generation_rejected] run three')];
    expect((await ended(quick.id)).status).toBe('complete');
    expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
    const { status, error } = await ended(refused.id);
    expect(status).toBe('errored');
    expect(error).toMatchObject({ message: expect.stringMatching(/^JobFailedError: .*generation_rejected/) });
    expect(service.sandbox.deliveries.map((delivery) => delivery.status)).toEqual([200, 200]);
  }, 90_000);
});

function childrenOf(pid: number, name: string): number[] {
  const listed = execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(pid)], { encoding: 'utf8' });
  return listed.split('\n').flatMap((line) => {
    const [id, command] = line.trim().split(/\s+/);
    return command === name ? [Number(id)] : [];
  });
}
