// Runs the recipes in examples/storage with the stores' SDKs. For Azure, see azurite.test.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { ROOT } from '../support/build.js';
import { completedEvent } from '../support/completed-event.js';
import { type BlobDouble, supabaseDouble, vercelBlobDouble } from './blob-doubles.js';
import { whyNoStores } from './packages.js';
import { S3Double } from './s3-double.js';
import { miniflare, startWorker } from './worker.js';

const closeCallbacks: (() => Promise<unknown>)[] = [];
let sandbox: Sandbox;
let client: GenClient;
let baseUrl: string;
let env: Record<string, string>;
const stubEnvs = (values: Record<string, string>) => {
  for (const [name, value] of Object.entries(values)) vi.stubEnv(name, value);
};
beforeEach(async () => {
  sandbox = createSandbox({ jobDurationMs: 0 });
  const service = await sandbox.listen({ port: 0 });
  closeCallbacks.push(() => service.close());
  baseUrl = service.url;
  client = new GenClient({ apiKey: sandbox.apiKey, baseUrl });
  env = { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: baseUrl, GEN_WEBHOOK_SECRET: sandbox.webhookSecret };
  stubEnvs(env);
});
afterEach(async () => {
  for (const close of closeCallbacks.splice(0).reverse()) await close();
  vi.unstubAllEnvs();
  vi.resetModules();
});

const createVideo = async () =>
  client.waitForJob((await client.videos.create({ prompt: 'a fox', duration: 5 })).job, { pollIntervalMs: 50 });
const bytesOf = async (job: string) => Buffer.from(await (await client.jobs.output(job)).arrayBuffer());

it('nextjs-s3: the webhook copies the file to S3, and GET serves it from there', async () => {
  const store = await S3Double.start();
  closeCallbacks.push(() => store.close());
  const { endpoint, bucket, region, account } = store;
  stubEnvs({ S3_ENDPOINT: endpoint, S3_BUCKET: bucket, AWS_REGION: region });
  stubEnvs({ AWS_ACCESS_KEY_ID: account.accessKeyId, AWS_SECRET_ACCESS_KEY: account.secretAccessKey });
  const { GET, POST } = await import('../../examples/storage/nextjs-s3.js');
  const job = await createVideo();
  const signed = await signWebhook(completedEvent(job.id, baseUrl), { secret: sandbox.webhookSecret });
  const received = await POST(new Request('https://app.test/api/videos/webhook', { method: 'POST', ...signed }));
  expect(received.status).toBe(200);
  const object = store.objects.get(`videos/${job.id}.mp4`);
  expect(object?.bytes.equals(await bytesOf(job.id))).toBe(true);
  expect(object?.headers).toMatchObject({ 'cache-control': 'private, max-age=86400' });
  const requests = sandbox.requests.length;
  const get = (user: string) =>
    GET(new Request(`https://app.test/api/videos/${job.id}`, { headers: { 'x-user': user } }));
  const served = Buffer.from(await (await get('user-1')).arrayBuffer());
  expect(object?.bytes.equals(served)).toBe(true);
  expect((await get('user-2')).status).toBe(404);
  expect(sandbox.requests).toHaveLength(requests);
});

it.skipIf(!miniflare)(
  'cloudflare-worker: creates, receives the webhook, copies to R2, and serves, in workerd',
  async () => {
    const program = readFileSync(`${ROOT}examples/storage/cloudflare-worker.ts`, 'utf8');
    const worker = await startWorker(program, { ...env, APP_TOKEN: 'token' }, 'VIDEOS');
    closeCallbacks.push(() => worker.dispose());
    const headers = { authorization: 'Bearer token' };
    const init = { method: 'POST', headers, body: JSON.stringify({ prompt: 'a fox' }) };
    const created = await worker.dispatchFetch('https://app.test/videos', init);
    expect(created.status).toBe(202);
    const { video } = (await created.json()) as { video: string };
    const id = video.replace('/videos/', '');
    expect(sandbox.jobs).toHaveLength(1);
    // The webhook URL doesn't resolve, so send the event manually.
    const signed = await signWebhook(completedEvent(id, baseUrl), { secret: sandbox.webhookSecret });
    const webhook = await worker.dispatchFetch('https://app.test/webhook', { method: 'POST', ...signed });
    expect(webhook.status).toBe(200);
    const bucket = await worker.getR2Bucket('VIDEOS');
    const expected = await bytesOf(id);
    const stored = { size: expected.length, customMetadata: { 'gen-job': id } };
    expect(await bucket.head(`videos/${id}.mp4`)).toMatchObject(stored);
    const served = await worker.dispatchFetch(`https://app.test${video}`, { headers });
    expect(Buffer.from(await served.arrayBuffer()).equals(expected)).toBe(true);
    expect((await worker.dispatchFetch(`https://app.test${video}`)).status).toBe(404);
  },
);

describe.skipIf(whyNoStores() !== undefined)("with the store's SDK", () => {
  const cases: readonly [string, () => Promise<BlobDouble>, (url: string) => Promise<Copy>][] = [
    ['vercel-blob', vercelBlobDouble, vercelBlob],
    ['supabase', supabaseDouble, supabase],
  ];
  const setUp = async (start: () => Promise<BlobDouble>, recipe: (url: string) => Promise<Copy>) => {
    const double = await start();
    closeCallbacks.push(() => double.close());
    const job = await createVideo();
    return { double, copy: await recipe(double.url), job, name: `videos/${job.id}.mp4` };
  };

  it.each(cases)('%s: stores the file once, and recognizes it', async (_, start, recipe) => {
    const { double, copy, job, name } = await setUp(start, recipe);
    const expected = await bytesOf(job.id);
    expect(await copy(client, job)).toMatchObject({ existed: false, sizeBytes: expected.length });
    expect(double.objects.get(name)?.bytes.equals(expected)).toBe(true);
    expect(await copy(client, job)).toMatchObject({ existed: true });
    expect(double.puts).toHaveLength(1);
    expect(JSON.stringify([...double.objects.values()].map(({ headers }) => headers))).not.toContain(sandbox.apiKey);
  });

  it.each(cases)('%s: three concurrent copies store one object', async (_, start, recipe) => {
    const { double, copy, job, name } = await setUp(start, recipe);
    const copies = await Promise.all([copy(client, job), copy(client, job), copy(client, job)]);
    expect(copies.filter(({ existed }) => !existed)).toHaveLength(1);
    expect(double.objects.get(name)?.bytes.length).toBe(copies[0]?.sizeBytes);
  });
});

type Copy = (
  client: GenClient,
  job: Awaited<ReturnType<typeof createVideo>>,
) => Promise<{ existed: boolean; sizeBytes: number }>;

async function vercelBlob(url: string): Promise<Copy> {
  stubEnvs({
    VERCEL_BLOB_API_URL: url,
    BLOB_READ_WRITE_TOKEN: 'vercel_blob_rw_store1_secret',
    VERCEL_BLOB_RETRIES: '0',
  });
  return (await import('../../examples/storage/vercel-blob.js')).copyToVercelBlob;
}

async function supabase(url: string): Promise<Copy> {
  stubEnvs({ SUPABASE_URL: url, SUPABASE_SERVICE_KEY: 'service-key' });
  return (await import('../../examples/storage/supabase.js')).copyToSupabase;
}

it('every recipe has a test, and the complete Worker has at most 40 lines', () => {
  const lines = (name: string) =>
    readFileSync(`${ROOT}examples/storage/${name}`, 'utf8')
      .split('\n')
      .filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length;
  const recipes = readdirSync(`${ROOT}examples/storage`).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.d.ts'),
  );
  const tests = ['recipes', 'azurite']
    .map((name) => readFileSync(`${ROOT}test/storage/${name}.test.ts`, 'utf8'))
    .join();
  expect(recipes.filter((name) => !tests.includes(name.replace('.ts', '')))).toEqual([]);
  expect(lines('cloudflare-worker.ts')).toBeLessThanOrEqual(40);
});
