// No test hangs: Vitest's timeout ends a test that waits, and the watchdog ends one that blocks the event loop.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const CONFIG = 'test/fixtures/endless/vitest.config.ts';

test('an endless loop fails the run with the name of its test', { timeout: 120_000 }, async () => {
  const env = { ...process.env, WATCHDOG_GRACE_MS: '100' };
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, [VITEST, 'run', '--config', CONFIG], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code, output: `${stdout}\n${stderr}` }),
    );
  });
  expect(output).toMatch(
    /A blocking loop: \S+\/endless\/loop\.ts > a queue that never empties\. Its process is killed\./,
  );
  expect(code).toBe(1);
});
