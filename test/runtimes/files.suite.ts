// Uploads and downloads in real runtimes. The object storage is as strict as S3.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LoopbackService } from '../files/loopback-service.js';
import { runInWorkerd, writeEntry } from './bundle.js';
import { assertSteps, type Context, execute, type Step, type Suite, stepsIn, tool } from './suite.js';
import { inPnpApp } from './yarn-pnp.js';

const SCENARIO = fileURLToPath(new URL('./files-scenario.mjs', import.meta.url));
/** Number of steps and uploads without and with a file system. Without one, no path can be uploaded and no output saved. */
const STEPS = { worker: { total: 8, uploads: 6 }, program: { total: 10, uploads: 7 } };

/** The scenario's input in addition to the package. */
interface Input {
  readonly baseUrl: string;
  readonly path: string;
  readonly directory: string;
}

/** Runs the scenario with a service, and checks its steps and the uploads. */
async function withService(
  project: string,
  { total, uploads }: (typeof STEPS)['program'],
  run: (input: Input) => Promise<Step[]>,
): Promise<void> {
  copyFileSync(SCENARIO, join(project, 'files-scenario.mjs'));
  const directory = mkdtempSync(join(tmpdir(), 'gen-runtime-'));
  const service = await LoopbackService.start();
  try {
    const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
    bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    writeFileSync(join(directory, 'fox.png'), bytes);
    service.addOutput('job_complete', { body: new Uint8Array(2_000_000).fill(9) });
    service.addOutput('job_interrupted', {
      body: new Uint8Array(2_000_000).fill(7),
      cutAfter: [500_000],
      redirect: true,
    });
    assertSteps(await run({ baseUrl: service.baseUrl, path: join(directory, 'fox.png'), directory }), total);
    const completed = [...service.uploads.values()].filter((upload) => upload.completed);
    assert.equal(completed.length, uploads);
    assert.equal(new Set(completed.map(({ sha256 }) => sha256)).size, 1, 'all uploads have the same content');
  } finally {
    await service.close();
    rmSync(directory, { recursive: true });
  }
}

/** Writes the scenario as a program, and returns its name. */
function writeProgram(project: string, input: Input): string {
  return writeEntry(
    project,
    'files-entry.mjs',
    `import * as gen from 'gen-client';
     import * as node from 'gen-client/node';
     import { filesScenario } from './files-scenario.mjs';
     console.log(JSON.stringify(await filesScenario({ gen, node, ...${JSON.stringify(input)} })));`,
  );
}

function filesIn(name: string, program: string, flags: readonly string[] = []): Suite {
  const run = ({ project }: Context) =>
    withService(project, STEPS.program, async (input) =>
      stepsIn(await execute(program, [...flags, writeProgram(project, input)], project)),
    );
  return { name: `files in ${name}`, run };
}

const inYarnPnp = ({ project }: Context) =>
  inPnpApp(project, (app, runNode) =>
    withService(app, STEPS.program, async (input) => stepsIn(await runNode([writeProgram(app, input)]))),
  );

const asWorker = ({ project }: Context) =>
  withService(project, STEPS.worker, ({ baseUrl }) => {
    const code = `import * as gen from 'gen-client';
      import { filesScenario } from './files-scenario.mjs';
      export default {
        async fetch() { return Response.json(await filesScenario({ gen, baseUrl: ${JSON.stringify(baseUrl)} })); },
      };`;
    return runInWorkerd(project, code, async (worker) => {
      const response = await worker.dispatchFetch('http://worker.test/');
      return (await response.json()) as Step[];
    });
  });

const PERMISSIONS = ['--permission', '--allow-fs-read=*', `--allow-fs-write=${join(tmpdir(), '*')}`];

export const suites: Suite[] = [
  filesIn('Node', process.execPath),
  filesIn('Node with permissions', process.execPath, PERMISSIONS),
  { name: 'files in Yarn PnP', run: inYarnPnp },
  filesIn('Bun', tool('bun')),
  filesIn('Deno', tool('deno'), ['run', '--allow-all', '--quiet']),
  { name: 'files in workerd', run: asWorker },
];
