// Vitest cannot end a loop that never gives way: its process has no turn left for a time limit. A thread beside the tests says
// which test it was, and ends the process.
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { Watched } from './watched.js';

/** How much longer a test may take than its own time limit, at which Vitest ends each that gives way. */
const GRACE_MS = Number(process.env.WATCHDOG_GRACE_MS ?? 60_000);
/** For loading a file and for its hooks, which build the package or install an app. */
const HOOKS_MS = 600_000;

const perProcess = globalThis as { watched?: Watched };
perProcess.watched ??= startThread();
const { watched } = perProcess;
const file = expect.getState().testPath ?? 'a test file';

watched.set(`${file}, outside its tests`, HOOKS_MS);
beforeEach(({ task }) => watched.set(`${file} > ${task.name}`, task.timeout + GRACE_MS));
afterEach(() => watched.set(`${file}, outside its tests`, HOOKS_MS));
afterAll(() => watched.clear());

function startThread(): Watched {
  const memory = new SharedArrayBuffer(1024);
  new Worker(new URL('./watchdog-thread.ts', import.meta.url), { workerData: memory }).unref();
  return new Watched(memory);
}
