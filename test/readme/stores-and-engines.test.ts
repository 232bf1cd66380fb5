// Runs every block of the guides about queues, many processes, and Workers, except the one with checkStore, and uses its
// exports as documented. Replaces the default Redis port with the port of the test's Redis.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GenClient, Store } from 'gen-client';
import type { GenQueue } from 'gen-client/bullmq';
import { createSandbox } from 'gen-client/sandbox';
import { signWebhook } from 'gen-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore } from '../../src/ledger/stores.js';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { ROOT } from '../support/build.js';
import { completedEvent } from '../support/completed-event.js';
import { blocksOf } from './blocks.js';
import { type BlockModule, modulesOf } from './modules.js';

vi.mock('cloudflare:workers', () => ({ DurableObject: class {}, waitUntil: undefined }));

type Handler = (request: Request) => Promise<Response>;
/** The blocks' exports. */
interface BlockExports {
  readonly client?: GenClient;
  readonly redis?: { disconnect(): void };
  readonly POST?: Handler;
  readonly receive?: Handler;
  readonly queue?: GenQueue;
  readonly cancel?: (queue: GenQueue | undefined, id: string) => Promise<boolean>;
  readonly shared?: Store & { close?(): Promise<void> };
  readonly makeVideo?: (step: object, key: string, options: object) => Promise<{ status: string }>;
  readonly worker?: { fetch(request: Request, env: object): Promise<Response> };
}

/** Returns a response's JSON. Throws if there is no response. */
async function jsonOf<T>(response: Response | undefined): Promise<T> {
  if (!response) throw new Error('There is no response');
  return (await response.json()) as T;
}

const FOLDER = join(ROOT, '.guide-blocks');
const PAGES = ['docs/queues-and-durable-runs.md', 'docs/many-processes.md'];
const modules = PAGES.flatMap((page) => modulesOf(blocksOf(page).filter(({ language }) => language === 'ts')));
const used = new Set<BlockModule>();
const opened: BlockExports[] = [];

describe.skipIf(whyNoRedis() !== undefined)('the guides to queues, many processes, and Workers', () => {
  let redis: RealRedis;
  const sandbox = createSandbox({ jobDurationMs: 20, limits: 'off', balanceTokens: 100_000 });
  const printed: string[] = [];
  const database = memoryStore();

  beforeAll(async () => {
    redis = await startRedis();
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER);
    for (const { file, code } of modules)
      writeFileSync(join(FOLDER, file), code.replaceAll('6379', String(redis.port)));
  });
  afterAll(async () => {
    rmSync(FOLDER, { recursive: true, force: true });
    for (const { redis: connection, queue } of opened) {
      connection?.disconnect();
      await queue?.close();
    }
    await redis.close();
  });
  beforeEach(() => {
    vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
    vi.stubEnv('GEN_BASE_URL', sandbox.baseUrl);
    vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
    vi.stubGlobal('fetch', (input: RequestInfo | URL, init?: RequestInit) => sandbox.fetch(new Request(input, init)));
    vi.stubGlobal('database', { read: database.read, swap: database.write });
    vi.spyOn(console, 'log').mockImplementation((text) => void printed.push(String(text)));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  /** Runs the page's block that contains `text`. */
  async function loadBlock(page: string, text: string): Promise<BlockExports> {
    const match = modules.find(({ block }) => block.file === page && block.code.includes(text));
    if (!match) throw new Error(`${page} has no block with ${text}`);
    used.add(match);
    const exported = (await import(/* @vite-ignore */ join(FOLDER, match.file))) as BlockExports;
    opened.push(exported);
    return exported;
  }

  /** Creates a signed webhook about a sandbox job. */
  async function signedWebhook(jobId: string, url = 'https://example.com/webhook'): Promise<Request> {
    const event = completedEvent(jobId, sandbox.baseUrl);
    const { body, headers } = await signWebhook(event, { secret: sandbox.webhookSecret });
    return new Request(url, { method: 'POST', body, headers });
  }

  test('the queue creates the order, calls its worker, and accepts webhooks', async () => {
    const { queue, receive } = await loadBlock('docs/queues-and-durable-runs', 'createGenQueue');
    await expect.poll(() => printed.length).toBe(1);
    expect(printed[0]).toBe(sandbox.jobs[0]?.providerOutputUrl);
    expect((await receive?.(await signedWebhook(sandbox.jobs[0]?.id ?? '')))?.status).toBe(204);
    expect(await queue?.queue.getJob('film-order-17')).toBeDefined();
    const { cancel } = await loadBlock('docs/queues-and-durable-runs', 'record.remove()');
    expect(await cancel?.(queue, 'film-order-17')).toBe(false);
    await queue?.videos.create({ prompt: 'a fox at dawn' }, { jobId: 'film-order-18', delay: 60_000 });
    expect(await cancel?.(queue, 'film-order-18')).toBe(true);
    expect(await queue?.queue.getJob('film-order-18')).toBeUndefined();
  });

  test("an engine's run returns its completed job", async () => {
    const { makeVideo } = await loadBlock('docs/queues-and-durable-runs', 'inngestEngine');
    const step = {
      run: (_id: string, act: () => Promise<unknown>) => act(),
      sleep: async () => {},
      waitForEvent: async () => null,
    };
    const job = await makeVideo?.(step, 'run-1', { NonRetriableError: Error });
    expect(job?.status).toBe('completed');
  });

  test('a process with Redis limits its creates, and accepts an event twice', async () => {
    const { client, POST } = await loadBlock('docs/many-processes', "per: 'day', store");
    await client?.videos.create({ prompt: 'a fox at dawn' });
    expect(client?.limits()['videos.create']).toMatchObject({ limit: 20 });
    const jobId = sandbox.jobs.at(-1)?.id ?? '';
    for (let count = 0; count < 2; count++) expect((await POST?.(await signedWebhook(jobId)))?.ok).toBe(true);
  });

  test('a Worker with a Durable Object creates a job, and accepts its webhook', async () => {
    const { worker } = await loadBlock('docs/many-processes', 'durableObjectStore');
    const object = memoryStore();
    const ACCOUNT = { idFromName: (name: string) => name, get: () => object };
    const create = new Request('https://app.test/', { method: 'POST', body: 'a fox' });
    const response = await worker?.fetch(create, { ACCOUNT });
    expect(response?.status).toBe(202);
    const { id }: { id: string } = await jsonOf(response);
    const reported = await worker?.fetch(await signedWebhook(id, 'https://app.test/webhook'), { ACCOUNT });
    expect(reported?.ok).toBe(true);
  });

  test('every block is covered', () => {
    // The block with checkStore needs a database.
    const unused = modules.filter((module) => !used.has(module) && !module.code.includes('checkStore(myStore)'));
    expect(unused.map(({ file }) => file)).toEqual([]);
  });
});
