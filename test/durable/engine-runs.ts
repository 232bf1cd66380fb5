// What every engine has to keep, with its example as a program of its own that is killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

    it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
      service.sandbox.outcomes.next({ webhookCopies: 0 });
      const ended = await engine.start(1, 'run one');
      await service.created('run one');
      await engine.restart();
      expect(await ended()).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
      expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
    }, 90_000);

    it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
      const runs = [await engine.start(2, 'run two'), await engine.start(3, '[fail:generation_rejected] run three')];
      const [quick, refused] = await Promise.all(runs.map((ended) => ended()));
      expect(quick).toMatchObject({ status: 'completed' });
      expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
      expect(refused?.message).toMatch(/generation_rejected/);
      const reads = service.sandbox.requests.filter(({ path }) => path.includes(String(quick?.id)));
      // One on a machine on which the run takes longer to its first read than its job does.
      expect([1, 2]).toContain(reads.length);
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
