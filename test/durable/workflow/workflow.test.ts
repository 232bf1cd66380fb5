// The example, built by Vercel's builder, on its local world.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ensureBuilt } from '../../support/build.js';
import { freePort } from '../../support/free-port.js';
import { exampleSource, folder, makeProject, versionsOf, whyNoEngine } from '../engine-packages.js';
import { deployable, environmentOf, jsonAt, originOf, storeFile, testRuns } from '../engine-runs.js';

if (whyNoEngine('workflow') !== undefined) it.skip('a run in Vercel Workflow', () => {});
else
  testRuns(
    'Vercel Workflow',
    async (service) => {
      await ensureBuilt();
      const routes = { 'vercel-routes.ts': exampleSource('vercel-routes.ts') };
      const projects = versionsOf('vercel-workflow.ts').map((source) =>
        makeProject('workflow', { ...routes, 'vercel-workflow.ts': source }),
      );
      for (const cwd of projects)
        await promisify(execFile)(process.execPath, [`${folder('workflow')}build-project.mjs`], { cwd });
      const port = String(await freePort());
      const origin = originOf(0, port);
      const more = {
        PORT: port,
        STORE: storeFile('workflow'),
        DATA_DIR: mkdtempSync(join(tmpdir(), 'gen-client-runs-')),
      };
      const program = await deployable((version) => {
        const env = environmentOf(service, { ...more, ORIGIN: originOf(version, port) });
        const stdio: ('ignore' | 'ipc')[] = ['ignore', 'ignore', 'ignore', 'ipc'];
        const child = fork(`${folder('workflow')}host.mjs`, [], { cwd: projects[version], env, stdio });
        return new Promise<ChildProcess>((resolve, reject) => {
          child.once('message', () => resolve(child));
          child.once('exit', (code) => reject(new Error(`the host exited with ${code}`)));
        });
      });
      return {
        storesInputs: true,
        deploy: program.deploy,
        async start(order, prompt) {
          const { runId } = await jsonAt(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
          return () => jsonAt(`${origin}/?run=${runId}`);
        },
        async close() {
          program.kill();
          for (const path of [...projects, more.DATA_DIR]) rmSync(path, { recursive: true, force: true });
        },
      };
    },
    ({ service, engine }) => {
      it('creates one job if two runs have the same key, and the second one polls without a hook', async () => {
        const runs = [await engine().start('order-4', 'run four'), await engine().start('order-4', 'run four')];
        const [first, second] = await Promise.all(runs.map((ended) => ended()));
        expect(first).toMatchObject({ status: 'completed' });
        expect(second).toMatchObject({ status: 'completed', id: first?.id });
        expect(service().bill('run four')).toEqual({ jobs: 1, charges: 1 });
      });
    },
  );
