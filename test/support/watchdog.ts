// Vitest can't time out a test that blocks the event loop. This starts a thread that reports the test and kills the process.
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { TestDeadline } from './watched.js';

/** Extra time after a test's own timeout, at which Vitest ends it unless it blocks. */
const GRACE_MS = Number(process.env.WATCHDOG_GRACE_MS ?? 60_000);
/** Timeout for loading a file and running its hooks, which may build the package or install an app. */
const HOOKS_MS = 600_000;

const perProcess = globalThis as { deadline?: TestDeadline };
perProcess.deadline ??= startThread();
const { deadline } = perProcess;
const file = expect.getState().testPath ?? 'a test file';

deadline.set(`${file}, outside its tests`, HOOKS_MS);
beforeEach(({ task }) => deadline.set(`${file} > ${task.name}`, task.timeout + GRACE_MS));
afterEach(() => deadline.set(`${file}, outside its tests`, HOOKS_MS));
afterAll(() => deadline.clear());

function startThread(): TestDeadline {
  const memory = new SharedArrayBuffer(1024);
  new Worker(new URL('./watchdog-thread.ts', import.meta.url), { workerData: memory }).unref();
  return new TestDeadline(memory);
}
