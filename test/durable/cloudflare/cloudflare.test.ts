// The example on the real Cloudflare Workflows engine, in workerd.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { bundle, startWorkerd, whyNoWorkerd } from '../../cloudflare/workerd.js';
import { freePort } from '../../support/free-port.js';
import { versionsOf } from '../engine-packages.js';
import { originOf, testRuns } from '../engine-runs.js';
import { until } from '../slow-service.js';

interface Instance {
  status(): Promise<{ status: string; output?: Record<string, unknown>; error?: Record<string, unknown> }>;
  sendEvent(event: { type: string }): Promise<void>;
}

interface Bindings {
  readonly VIDEOS: { get(id: string): Promise<Instance> };
}

/** Adds a Durable Object store, as the guide recommends. */
const withObjectStore = (source: string) =>
  `import { durableObjectStore } from 'gen-client/cloudflare';
export { GenAccount } from 'gen-client/cloudflare';
${source}`.replace(
    'createActivities(new GenClient())',
    "createActivities(new GenClient({ store: durableObjectStore(this.env.ACCOUNT, 'main') }))",
  );

if (whyNoWorkerd !== undefined) it.skip('a run in Cloudflare Workflows', () => {});
else
  testRuns('Cloudflare Workflows', async (service) => {
    const folder = mkdtempSync(join(tmpdir(), 'gen-client-workflows-'));
    const scripts = await Promise.all(
      versionsOf('cloudflare-workflow.ts', withObjectStore).map((text) => bundle({ text })),
    );
    const port = await freePort();
    const start = (version: 0 | 1) =>
      startWorkerd({
        modules: true,
        script: scripts[version],
        compatibilityFlags: ['nodejs_compat'],
        host: '127.0.0.1',
        port,
        bindings: {
          GEN_API_KEY: service.sandbox.apiKey,
          GEN_BASE_URL: service.url,
          GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
          URL: originOf(version, port),
        },
        durableObjects: { ACCOUNT: { className: 'GenAccount', useSQLite: true } },
        durableObjectsPersist: join(folder, 'objects'),
        workflows: { VIDEOS: { name: 'videos', className: 'Video' } },
        workflowsPersist: join(folder, 'workflows'),
      });
    let worker = await start(0);
    const orders: string[] = [];
    const instance = async (id: string) => (await worker.getBindings<Bindings>()).VIDEOS.get(id);
    return {
      async deploy() {
        for (const pid of childrenOf(process.pid, 'workerd')) process.kill(pid, 'SIGKILL');
        await worker.dispose().catch(() => {});
        worker = await start(1);
        // Locally, only an event resumes an instance. On Cloudflare, its alarm does.
        for (const id of orders) await (await instance(id)).sendEvent({ type: 'touch' });
      },
      async start(order, prompt) {
        await worker.dispatchFetch(`http://worker/?order=${order}`, { method: 'POST', body: prompt });
        orders.push(order);
        return () =>
          until(async () => {
            const { status, output, error } = await (await instance(order)).status();
            return status === 'complete' ? output : status === 'errored' ? error : undefined;
          }, 90_000);
      },
      async close() {
        await worker.dispose();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  });

function childrenOf(pid: number, name: string): number[] {
  const processes = execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(pid)], { encoding: 'utf8' });
  return processes.split('\n').flatMap((line) => {
    const [id, command] = line.trim().split(/\s+/);
    return command === name ? [Number(id)] : [];
  });
}
