// What every engine has to keep, with its example as a program of its own that is killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { bundleForNode, type EngineName, folder } from './engine-packages.js';
import { type SlowService, slowService, until } from './slow-service.js';

/** An engine that runs the example. */
export interface RunningEngine {
  /** Starts a run, and gives what waits for its end: its job, or its error. */
  start(order: number, prompt: string): Promise<() => Promise<Record<string, unknown>>>;
  /** Kills the program, and starts it again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Tests the runs of an engine. `more` has tests of its own. */
export function testRuns(
  name: string,
  open: (service: SlowService) => Promise<RunningEngine>,
  more: (the: { service(): SlowService; engine(): RunningEngine }) => void = () => {},
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

    let others: Promise<readonly { readonly told: Record<string, unknown>; readonly endedAt: number }[]>;
    const ran = async (order: number, prompt: string) => {
      const told = await (await engine.start(order, prompt))();
      return { told, endedAt: Date.now() };
    };

    it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
      service.sandbox.outcomes.next({ webhookCopies: 0 });
      const ended = await engine.start(1, 'run one');
      await service.created('run one');
      await engine.restart();
      // These are made while that one waits.
      others = Promise.all([ran(2, 'run two'), ran(3, '[fail:generation_rejected] run three')]);
      others.catch(() => {});
      expect(await ended()).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
      expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
    }, 90_000);

    it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
      const [quick, refused] = await others;
      expect(quick?.told).toMatchObject({ status: 'completed' });
      expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
      expect(refused?.told.message).toMatch(/generation_rejected/);
      // The job takes six seconds, and the first read is due after ten: the webhook has woken the run.
      const tookMs = Number(quick?.endedAt) - Date.parse(String(quick?.told.createdAt));
      if (tookMs < 9_500 || !isTooSlow('that a webhook wakes a run')) expect(tookMs).toBeLessThan(9_500);
    }, 90_000);

    more({ service: () => service, engine: () => engine });
  });
}

/** A program that is killed and started again. */
export async function restartable(start: () => Promise<ChildProcess>) {
  let program = await start();
  return {
    kill: () => program.kill('SIGKILL'),
    async restart() {
      program.kill('SIGKILL');
      program = await start();
    },
  };
}

/** What a program of an example reads of its environment. */
export function environmentOf({ sandbox, url }: SlowService, more: Record<string, string>) {
  return {
    ...process.env,
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: url,
    GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
    ...more,
  };
}

/** Starts an example as a program beside the packages of its engine, until it answers at a URL. */
export async function startExample(
  engine: EngineName,
  example: string,
  service: SlowService,
  { env, answersAt }: { readonly env: Record<string, string>; readonly answersAt: string },
) {
  const path = await bundleForNode(engine, `examples/durable/${example}`);
  return restartable(async () => {
    const options = { cwd: folder(engine), stdio: 'ignore', env: environmentOf(service, env) } as const;
    const child = spawn(process.execPath, [path], options);
    await until(() => fetch(answersAt).then(() => true), 60_000);
    return child;
  });
}

/** The JSON that an address answers. */
export async function jsonAt(url: string, init?: RequestInit): Promise<Record<string, unknown>> {
  return (await (await fetch(url, init)).json()) as Record<string, unknown>;
}
