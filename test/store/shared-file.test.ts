// Processes that share a file store and are killed at random: no paid job is lost, and the budget equals the charges.
// `npm run campaign -- file` runs eight of them for a minute.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { ROOT } from '../support/build.js';
import { collectLines, expectNothingLost } from '../support/killed-processes.js';

const IS_FULL = process.env.CAMPAIGN === 'full';
const [PROCESSES, MIN_MS, MIN_JOBS] = IS_FULL ? [8, 60_000, 100] : [4, 0, 20];
/** Factor by which the maximum lifetime grows after a kill before the first job, and shrinks after any other kill. */
const LIFETIME_STEP = 1.25;
const NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc'];
const hasNamespaces = spawnSync('unshare', [...NAMESPACE.slice(1), 'true']).status === 0;

const NO_PREFIX: readonly string[] = [];

let folder = '';
let program = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gen-shared-file-'));
  program = join(folder, 'program.mjs');
  const entryPoints = [join(ROOT, 'test/store/shared-file-process.ts')];
  await build({ entryPoints, outfile: program, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Service {
  readonly sandbox: Sandbox;
  readonly url: string;
  readonly path: string;
}

/** Starts a process. Appends its output to `lines`. */
function start({ sandbox, url, path }: Service, prefix: readonly string[], lines: string[], task = ''): ChildProcess {
  const [command = '', ...args] = [...prefix, process.execPath, program, path, url, sandbox.apiKey, task];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  void collectLines(child, lines);
  return child;
}

/** Kills a process group, because `unshare` runs the program as a child. */
const kill = ({ pid, exitCode }: ChildProcess) => pid && exitCode === null && process.kill(-pid, 'SIGKILL');

const waitForClose = (child: ChildProcess) => new Promise((resolve) => child.once('close', resolve));

/** Maximum lifetime of a process. Adapts to the load, so that about half are killed before their first job. */
interface Lifetime {
  maxMs: number;
}

/** Restarts and kills a process until `isDone`. Returns the number of kills. */
async function killRepeatedly(isDone: () => boolean, lifetime: Lifetime, restart: () => ChildProcess): Promise<number> {
  for (let kills = 0; ; kills++) {
    const child = restart();
    let hasJob = false;
    child.stdout?.once('data', () => {
      hasJob = true;
    });
    const timer = setTimeout(() => kill(child), Math.random() * lifetime.maxMs);
    await waitForClose(child);
    clearTimeout(timer);
    lifetime.maxMs *= hasJob ? 1 / LIFETIME_STEP : LIFETIME_STEP;
    if (isDone()) return kills + 1;
  }
}

describe.each([
  ['on one machine', NO_PREFIX, undefined],
  ['in separate namespaces, like containers', NAMESPACE, hasNamespaces ? undefined : 'no unshare'],
])('processes %s', (name, prefix, skipReason) => {
  it.skipIf(skipReason)(
    'lose no paid job to SIGKILL, and their budget equals the charges (real processes)',
    async () => {
      const sandbox = createSandbox({ limits: 'off', balanceTokens: 1e9, jobDurationMs: [50, 400] });
      const server = await sandbox.listen({ port: 0 });
      const service = { sandbox, url: server.url, path: join(folder, `${name.length}.store`) };
      const lines: string[] = [];
      // A kill during the store's creation leaves a file that is removed only after an hour.
      await waitForClose(start(service, NO_PREFIX, lines, 'resume'));
      const lifetime = { maxMs: 1_000 };
      const untilMs = Date.now() + MIN_MS;
      const isDone = () => Date.now() >= untilMs && sandbox.jobs.length >= MIN_JOBS;
      const kills = await Promise.all(
        // With a prefix, half of them run in namespaces, so that processes with the same ID share the file.
        Array.from({ length: PROCESSES }, (_, at) =>
          killRepeatedly(isDone, lifetime, () => start(service, at % 2 === 0 ? prefix : NO_PREFIX, lines)),
        ),
      );
      await waitForClose(start(service, NO_PREFIX, lines, 'resume'));
      await server.close();
      console.info(`${kills.reduce((sum, count) => sum + count)} kills`);
      expectNothingLost(sandbox, lines);
      const files = readdirSync(folder).filter((file) => file.startsWith(`${name.length}.store`));
      expect(files).toEqual([`${name.length}.store`]);
    },
    200_000,
  );
});
