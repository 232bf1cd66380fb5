// The example on the real Restate server.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { folder, whyNoEngine } from '../engine-packages.js';
import { startExample, testRuns } from '../engine-runs.js';
import { pause, until } from '../slow-service.js';

const post = (url: string, body: object) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

if (whyNoEngine('restate') !== undefined) it.skip('a run in Restate', () => {});
else
  testRuns('Restate', async (service) => {
    const data = mkdtempSync(join(tmpdir(), 'gen-client-restate-'));
    const ports = await Promise.all([1, 2, 3, 4].map(() => freePort()));
    const [ingress = '', admin = '', node = '', handler = ''] = ports.map((port) => `127.0.0.1:${port}`);
    const server = spawn(
      `${folder('restate')}node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
      [],
      {
        cwd: data,
        stdio: 'ignore',
        env: {
          ...process.env,
          DO_NOT_TRACK: '1',
          RESTATE_INGRESS__BIND_ADDRESS: ingress,
          RESTATE_ADMIN__BIND_ADDRESS: admin,
          RESTATE_BIND_ADDRESS: node,
          RESTATE_ADVERTISED_ADDRESS: `http://${node}`,
          RESTATE_BASE_DIR: data,
        },
      },
    );
    const program = await startExample('restate', 'restate-workflow', {
      service,
      // Restate receives the webhooks.
      port: ports[0] ?? 0,
      env: { PORT: String(ports[3]) },
      readyAt: `http://${admin}/health`,
    });
    await until(
      async () =>
        (await post(`http://${admin}/deployments`, { uri: `http://${handler}`, force: true })).ok || undefined,
      30_000,
    );
    return {
      deploy: program.deploy,
      async start(order, prompt) {
        const response = post(`http://${ingress}/video/${order}/run`, { prompt });
        return async () => (await response).json();
      },
      async close() {
        program.kill();
        server.kill('SIGKILL');
        await pause(200);
        rmSync(data, { recursive: true, force: true });
      },
    };
  });
