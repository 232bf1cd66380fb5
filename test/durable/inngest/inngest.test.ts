// The example in Inngest's real handler, with a stand-in for Inngest's server.
import { expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { whyNoEngine } from '../engine-packages.js';
import { originOf, startExample, testRuns } from '../engine-runs.js';
import { startExecutor } from './executor.js';

if (whyNoEngine('inngest') !== undefined) it.skip('a run in Inngest', () => {});
else
  testRuns('Inngest', async (service) => {
    const executor = await startExecutor();
    const port = String(await freePort());
    const origin = originOf(0, port);
    const env = { INNGEST_DEV: '1', INNGEST_BASE_URL: executor.url, PORT: port };
    const program = await startExample('inngest', 'inngest-function', {
      service,
      port,
      env,
      readyAt: `${origin}/hook`,
    });
    return {
      deploy: program.deploy,
      async start(order, prompt) {
        const run = executor.run(`${origin}/api/inngest`, { order, prompt });
        return async () => {
          const { status, body, steps } = await run;
          if (order === 'order-2') expect(steps.length).toBeLessThanOrEqual(3);
          if (order === 'order-3')
            expect([status, JSON.stringify(body)]).toEqual([400, expect.stringMatching('JobFailedError')]);
          return status === 200 ? (body as Record<string, unknown>) : { message: JSON.stringify(body) };
        };
      },
      async close() {
        program.kill();
        executor.close();
      },
    };
  });
