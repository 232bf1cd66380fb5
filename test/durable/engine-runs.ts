// Tests that run with every engine. They kill and redeploy the program of the engine's example.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { bundleForNode, type EngineName, folder, versionsOf } from './engine-packages.js';
import { type SlowService, slowService, until } from './slow-service.js';

/** An engine that runs the example. */
export interface RunningEngine {
  /** Starts a run. Returns a function that resolves with its job or its error as `{ message }`. */
  start(order: string, prompt: string): Promise<() => Promise<Record<string, unknown>>>;
  /** Kills the program, and starts its second version. */
  deploy(): Promise<void>;
  /** If true, the engine stores a step's input before running it, so a deploy doesn't change it. */
  readonly storesInputs?: true;
  close(): Promise<void>;
}

/** Tests an engine. `more` adds tests. */
export function testRuns(
  name: string,
  open: (service: SlowService) => Promise<RunningEngine>,
  more: (running: { service(): SlowService; engine(): RunningEngine }) => void = () => {},
): void {
  describe(`a run in ${name}`, () => {
    let service: SlowService;
    let engine: RunningEngine;

    beforeAll(async () => {
      service = await slowService();
      engine = await open(service);
    }, 180_000);
    afterAll(async () => {
      await engine?.close();
      await service.close();
    });

    let others: Promise<readonly { readonly result: Record<string, unknown>; readonly endedAt: number }[]>;
    const runToEnd = async (order: string, prompt: string) => {
      const result = await (await engine.start(order, prompt))();
      return { result, endedAt: Date.now() };
    };

    it('pays for one job if a deploy kills its create and changes its params, and the webhook is lost', async () => {
      service.sandbox.outcomes.next({ webhookCopies: 0 });
      const outcome = await engine.start('order-1', 'run one');
      await service.created('run one');
      await engine.deploy();
      // The other runs start while the first one waits.
      others = Promise.all([
        runToEnd('order-2', 'run two'),
        runToEnd('order-3', '[fail:generation_rejected] run three'),
      ]);
      others.catch(() => {});
      expect(await outcome()).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
      expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
      expect(service.bill('run one at night')).toEqual({ jobs: 0, charges: 0 });
      const [first, ...retries] = service.creates('order-1');
      expect(first).toMatchObject({ prompt: 'run one' });
      expect(retries.at(-1)?.prompt).toBe(engine.storesInputs ? 'run one' : 'run one at night');
      expect(retries.at(-1)?.webhook_url === first?.webhook_url).toBe(engine.storesInputs ?? false);
    }, 120_000);

    it("polls its job when the webhook arrives, and fails with its job's error", async () => {
      const [quick, failed] = await others;
      expect(quick?.result).toMatchObject({ status: 'completed' });
      expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
      expect(failed?.result.message).toMatch(/generation_rejected/);
      // The job takes six seconds and the first poll is due after ten, so the webhook woke the run.
      const tookMs = Number(quick?.endedAt) - Date.parse(String(quick?.result.createdAt));
      if (tookMs < 9_500 || !isTooSlow('waking a run with a webhook')) expect(tookMs).toBeLessThan(9_500);
    }, 90_000);

    more({ service: () => service, engine: () => engine });
  });
}

/** Runs the first of two versions of a program. `deploy` replaces it with the second. */
export async function deployable(start: (version: 0 | 1) => Promise<ChildProcess>) {
  let program = await start(0);
  return {
    kill: () => program.kill('SIGKILL'),
    async deploy() {
      program.kill('SIGKILL');
      program = await start(1);
    },
  };
}

/** A version's origin. A deploy changes it. */
export const originOf = (version: 0 | 1, port: number | string) =>
  `http://${['127.0.0.1', 'localhost'][version]}:${port}`;

/** A file store shared by both versions of a program. */
export const storeFile = (engine: EngineName) =>
  join(mkdtempSync(join(tmpdir(), `gen-client-${engine}-`)), 'gen.store');

/** Returns an example's environment. */
export function environmentOf({ sandbox, url }: SlowService, more: Record<string, string>) {
  return {
    ...process.env,
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: url,
    GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
    ...more,
  };
}

interface Example {
  readonly service: SlowService;
  /** The port that receives webhooks. */
  readonly port: number | string;
  readonly env: Record<string, string>;
  /** A URL that responds once the program is ready. */
  readonly readyAt: string;
}

/** Starts an example with its engine's packages. */
export async function startExample(engine: EngineName, name: string, { service, port, env, readyAt }: Example) {
  const STORE = storeFile(engine);
  const programs = await Promise.all(
    versionsOf(`${name}.ts`).map((source, version) => bundleForNode(engine, source, `${name}-${version}`)),
  );
  return deployable(async (version) => {
    const environment = environmentOf(service, { ...env, ORIGIN: originOf(version, port), STORE });
    const options = { cwd: folder(engine), stdio: 'ignore', env: environment } as const;
    const child = spawn(process.execPath, [programs[version] ?? ''], options);
    await until(() => fetch(readyAt).then(() => true), 60_000);
    return child;
  });
}

export async function jsonAt(url: string, init?: RequestInit): Promise<Record<string, unknown>> {
  return (await (await fetch(url, init)).json()) as Record<string, unknown>;
}
