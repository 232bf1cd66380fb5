// The example, run by the real Restate server.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { folder, whyNoEngine } from '../engine-packages.js';
import { jsonAt, startExample, testRuns } from '../engine-runs.js';
import { pause, until } from '../slow-service.js';

const post = (url: string, body: object) =>
  ({ url, method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }) as const;

if (whyNoEngine('restate') !== undefined) it.skip('a run in Restate', () => {});
else
  testRuns('Restate', async (service) => {
    const data = mkdtempSync(join(tmpdir(), 'gen-client-restate-'));
    const ports = await Promise.all([1, 2, 3, 4, 5].map(() => freePort()));
    const [ingress = '', admin = '', node = '', handler = '', hook = ''] = ports.map((port) => `127.0.0.1:${port}`);
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
    const program = await startExample('restate', 'restate-workflow.ts', service, {
      answersAt: `http://${hook}/`,
      env: {
        RESTATE_URL: `http://${ingress}`,
        ORIGIN: `http://${hook}`,
        PORT: String(ports[3]),
        HOOK_PORT: String(ports[4]),
      },
    });
    await until(async () => {
      const { url, ...init } = post(`http://${admin}/deployments`, { uri: `http://${handler}`, force: true });
      return (await fetch(url, init)).ok ? true : undefined;
    }, 30_000);
    return {
      restart: program.restart,
      get isNextVersion() {
        return program.isNextVersion;
      },
      async start(number, prompt) {
        const order = `order-${number}`;
        const { url, ...init } = post(`http://${ingress}/video/${order}/run`, { order, prompt });
        const ended = jsonAt(url, init);
        return () => ended;
      },
      async close() {
        program.kill();
        server.kill('SIGKILL');
        await pause(200);
        rmSync(data, { recursive: true, force: true });
      },
    };
  });
