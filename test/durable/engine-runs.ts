// What every engine has to keep, with its example as a program of its own that is killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { bundleForNode, type EngineName, folder, nextVersion, withStore } from './engine-packages.js';
import { type SlowService, slowService, until } from './slow-service.js';

/** An engine that runs the example. */
export interface RunningEngine {
  /** Starts a run, and gives what waits for its end: its job, or its error. */
  start(order: number, prompt: string): Promise<() => Promise<Record<string, unknown>>>;
  /** True once a next version of the program runs. */
  readonly isNextVersion?: boolean;
  /** Kills the program, and starts its next version if there is one. */
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

    it('has one job and one charge if its process dies with its create, the next version has another URL and prompt, and the webhook is lost', async () => {
      service.sandbox.outcomes.next({ webhookCopies: 0 });
      const ended = await engine.start(1, 'run one');
      await service.created('run one');
      await engine.restart();
      // These are made while that one waits.
      others = Promise.all([ran(2, 'run two'), ran(3, '[fail:generation_rejected] run three')]);
      others.catch(() => {});
      expect(await ended()).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
      expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
      expect(service.bill('run one at night')).toEqual({ jobs: 0, charges: 0 });
      if (engine.isNextVersion) expect(service.sentPrompts()).toContain('run one at night');
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

/** A program that is killed and started again. `start` is passed the number of the start, from 0. */
export async function restartable(start: (number: number) => Promise<ChildProcess>) {
  let number = 0;
  let program = await start(number);
  return {
    kill: () => program.kill('SIGKILL'),
    get isNextVersion() {
      return number > 0;
    },
    async restart() {
      program.kill('SIGKILL');
      program = await start(++number);
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

/**
 * Starts an example as a program beside the packages of its engine, until it answers at a URL. Started again, it is the next
 * version: a rolling deploy changes its `ORIGIN` and a prompt. Both have one store.
 */
export async function startExample(
  engine: EngineName,
  example: string,
  service: SlowService,
  { env, answersAt }: { readonly env: Record<string, string>; readonly answersAt: string },
) {
  const store = join(mkdtempSync(join(tmpdir(), `gen-client-${engine}-`)), 'gen.store');
  const programs = await Promise.all(
    [withStore, nextVersion].map((version) => bundleForNode(engine, `examples/durable/${example}`, version)),
  );
  return restartable(async (number) => {
    const { ORIGIN = '' } = env;
    const origin = number === 0 ? ORIGIN : ORIGIN.replace('127.0.0.1', 'localhost');
    const options = {
      cwd: folder(engine),
      stdio: 'ignore',
      env: environmentOf(service, { ...env, ORIGIN: origin, STORE: store }),
    } as const;
    const child = spawn(process.execPath, [programs[Math.min(number, 1)] ?? ''], options);
    await until(() => fetch(answersAt).then(() => true), 60_000);
    return child;
  });
}

/** The JSON that an address answers. */
export async function jsonAt(url: string, init?: RequestInit): Promise<Record<string, unknown>> {
  return (await (await fetch(url, init)).json()) as Record<string, unknown>;
}
