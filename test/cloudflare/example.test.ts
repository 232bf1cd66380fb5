// The Workers example in workerd, with its Workflow, Durable Object, bucket, and webhook.
import { readFileSync } from 'node:fs';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/build.js';
import { isTooSlow } from '../support/core-share.js';
import { freePort } from '../support/free-port.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

interface Run {
  status(): Promise<{ status: string; output?: { id: string }; error?: unknown }>;
}

/** Converts `wrangler.jsonc` to Miniflare's options. */
function readWrangler() {
  const text = readFileSync(`${ROOT}examples/workers/wrangler.jsonc`, 'utf8');
  const config = JSON.parse(text.replace(/^\s*\/\/.*$/gm, '')) as {
    main: string;
    compatibility_date: string;
    compatibility_flags: string[];
    vars: Record<string, string>;
    durable_objects: { bindings: { name: string; class_name: string }[] };
    migrations: { new_sqlite_classes: string[] }[];
    r2_buckets: { binding: string; bucket_name: string }[];
    workflows: { binding: string; name: string; class_name: string }[];
  };
  const sqlite = config.migrations.flatMap((migration) => migration.new_sqlite_classes);
  return {
    main: config.main,
    vars: config.vars,
    options: {
      compatibilityDate: config.compatibility_date,
      compatibilityFlags: config.compatibility_flags,
      durableObjects: Object.fromEntries(
        config.durable_objects.bindings.map(({ name, class_name: className }) => [
          name,
          { className, useSQLite: sqlite.includes(className) },
        ]),
      ),
      r2Buckets: Object.fromEntries(config.r2_buckets.map(({ binding, bucket_name: name }) => [binding, name])),
      workflows: Object.fromEntries(
        config.workflows.map(({ binding, name, class_name: className }) => [binding, { name, className }]),
      ),
    },
  };
}

describe.skipIf(whyNoWorkerd !== undefined)('the Workers example', () => {
  let sandbox: Sandbox;
  let service: Awaited<ReturnType<Sandbox['listen']>>;
  let worker: Worker;
  const headers = { authorization: 'Bearer token-of-the-app' };
  beforeAll(async () => {
    sandbox = createSandbox({ jobDurationMs: 1_000, limits: 'documented' });
    service = await sandbox.listen({ port: 0 });
    const port = await freePort();
    const { main, vars, options } = readWrangler();
    worker = await startWorkerd({
      ...options,
      modules: true,
      script: await bundle({ file: `../../examples/workers/${main}` }),
      host: '127.0.0.1',
      port,
      bindings: {
        ...vars,
        GEN_API_KEY: sandbox.apiKey,
        GEN_BASE_URL: service.url,
        GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
        APP_TOKEN: 'token-of-the-app',
        URL: `http://127.0.0.1:${port}`,
      },
    });
  });
  afterAll(async () => {
    await worker.dispose();
    await service.close();
  });

  const send = (path: string, init?: RequestInit) => worker.dispatchFetch(`http://worker.test${path}`, init);

  test('creates a video in a Workflow, stores it in R2, and serves it to its user', { timeout: 300_000 }, async () => {
    const order = { method: 'POST', headers, body: JSON.stringify({ prompt: 'a fox at dawn' }) };
    const startMs = performance.now();
    const response = await send('/?order=17', order);
    expect([response.status, await response.json()]).toEqual([202, { run: '17' }]);
    const { VIDEOS } = await worker.getBindings<{ VIDEOS: { get(id: string): Promise<Run> } }>();
    const run = await VIDEOS.get('17');
    let state = await run.status();
    for (; !/complete|errored/.test(state.status); state = await run.status())
      await new Promise((resolve) => setTimeout(resolve, 100));
    expect(state).toMatchObject({ status: 'complete', output: { status: 'completed' } });
    // Without the webhook, the first poll is sent after ten seconds.
    const tookMs = performance.now() - startMs;
    if (tookMs < 9_500 || !isTooSlow('waking a Workflow with a webhook')) expect(tookMs).toBeLessThan(9_500);
    expect(sandbox.deliveries.map(({ status }) => status)).toEqual([200]);
    expect(sandbox.jobs).toHaveLength(1);

    const video = await send(`/${state.output?.id}`, { headers });
    expect([video.status, video.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    const bytes = new Uint8Array(await video.arrayBuffer());
    expect(new TextDecoder().decode(bytes.subarray(4, 8))).toBe('ftyp');
    const { FILES } = await worker.getBindings<{ FILES: { head(key: string): Promise<{ size: number } | null> } }>();
    expect((await FILES.head(`videos/${state.output?.id}.mp4`))?.size).toBe(bytes.length);
    expect((await send(`/${state.output?.id}`)).status).toBe(404);
    expect((await send('/?order=18', { method: 'POST', body: '{}' })).status).toBe(401);
  });
});
