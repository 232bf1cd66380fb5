// The example, compiled by Vercel's own builder and run on its local world.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ensureBuilt } from '../../support/build.js';
import { freePort } from '../../support/free-port.js';
import { folder, makeProject, whyNoEngine } from '../engine-packages.js';
import { environmentOf, jsonAt, restartable, testRuns } from '../engine-runs.js';

if (whyNoEngine('workflow') !== undefined) it.skip('a run in Vercel Workflow', () => {});
else
  testRuns(
    'Vercel Workflow',
    async (service) => {
      await ensureBuilt();
      const project = makeProject('workflow', ['vercel-workflow.ts', 'vercel-routes.ts']);
      await promisify(execFile)(process.execPath, [`${folder('workflow')}build-project.mjs`], { cwd: project });
      const port = String(await freePort());
      const origin = `http://127.0.0.1:${port}`;
      const program = await restartable(() => {
        const env = environmentOf(service, { ORIGIN: origin, PORT: port });
        const stdio: ('ignore' | 'ipc')[] = ['ignore', 'ignore', 'ignore', 'ipc'];
        const child = fork(`${folder('workflow')}host.mjs`, [], { cwd: project, env, stdio });
        return new Promise<ChildProcess>((resolve, reject) => {
          child.once('message', () => resolve(child));
          child.once('exit', (code) => reject(new Error(`the host ended with ${code}`)));
        });
      });
      return {
        restart: program.restart,
        async start(order, prompt) {
          const { runId } = await jsonAt(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
          return () => jsonAt(`${origin}/?run=${runId}`);
        },
        async close() {
          program.kill();
          rmSync(project, { recursive: true, force: true });
        },
      };
    },
    ({ service, engine }) => {
      it('that is started twice under one key has one job: the second run cannot have the hook and reads', async () => {
        const runs = [await engine().start(4, 'run four'), await engine().start(4, 'run four')];
        const [first, second] = await Promise.all(runs.map((ended) => ended()));
        expect(first).toMatchObject({ status: 'completed' });
        expect(second).toMatchObject({ status: 'completed', id: first?.id });
        expect(service().bill('run four')).toEqual({ jobs: 1, charges: 1 });
      });
    },
  );
