// Uploads and downloads in real runtimes, with object storage that is as strict as well-known ones.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LoopbackService } from '../files/loopback-service.js';
import { inWorkerd, type Worker, writeEntry } from './bundle.js';
import { type Context, execute, type Step, type Suite, tool } from './suite.js';
import { inPnpApp } from './yarn-pnp.js';

const SCENARIO = fileURLToPath(new URL('./files-scenario.mjs', import.meta.url));
const UPLOADS = 7;

/** The scenario's input in addition to the package. */
interface Place {
  readonly baseUrl: string;
  readonly path: string;
  readonly directory: string;
}

/** Starts the servers, runs the scenario, and checks what arrived. */
async function hold(
  { project }: Pick<Context, 'project'>,
  uploads: number,
  run: (place: Place) => Promise<Step[]>,
): Promise<void> {
  copyFileSync(SCENARIO, join(project, 'files-scenario.mjs'));
  const directory = mkdtempSync(join(tmpdir(), 'gen-runtime-'));
  const service = await LoopbackService.start();
  try {
    const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
    bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    writeFileSync(join(directory, 'fox.png'), bytes);
    service.addOutput('job_whole', { body: new Uint8Array(2_000_000).fill(9) });
    service.addOutput('job_cut', { body: new Uint8Array(2_000_000).fill(7), cuts: [500_000], redirect: true });
    const steps = await run({ baseUrl: service.baseUrl, path: join(directory, 'fox.png'), directory });
    const failed = steps.flatMap(({ name, error }) => (error === undefined ? [] : [`${name}: ${error}`]));
    if (failed.length > 0 || steps.length <= uploads)
      throw new Error(`${steps.length} steps ran. ${failed.join('\n')}`);
    const whole = [...service.uploads.values()].filter((upload) => upload.completed);
    const sums = new Set(whole.map(({ sha256 }) => sha256));
    if (whole.length !== uploads || sums.size !== 1) throw new Error(`${whole.length} uploads, ${sums.size} contents`);
  } finally {
    await service.close();
    rmSync(directory, { recursive: true });
  }
}

/** Writes the scenario as a program with the entry point for files. */
function writeProgram(project: string, place: Place): string {
  return writeEntry(
    project,
    'files-entry.mjs',
    `import * as gen from 'gen-client';
     import * as node from 'gen-client/node';
     import { filesScenario } from './files-scenario.mjs';
     console.log(JSON.stringify(await filesScenario({ gen, node, ...${JSON.stringify(place)} })));`,
  );
}

const stepsIn = (printed: string) => JSON.parse(printed.trim().split('\n').at(-1) ?? '[]') as Step[];

/** Runs the scenario as a separate program. */
function asProgram(name: string, program: string, flags: readonly string[]): Suite {
  const run = (context: Context) =>
    hold(context, UPLOADS, async (place) => {
      const entry = writeProgram(context.project, place);
      return stepsIn(await execute(program, [...flags, entry], context.project));
    });
  return { name, run };
}

const inYarnPnp = ({ project }: Context) =>
  inPnpApp(project, (app, runNode) =>
    hold({ project: app }, UPLOADS, async (place) => stepsIn(await runNode([writeProgram(app, place)]))),
  );

/** Runs the scenario in workerd, which has no files, with bytes and streams. */
async function asWorker({ project }: Context): Promise<void> {
  await hold({ project }, UPLOADS - 1, ({ baseUrl }) => {
    const code = `import * as gen from 'gen-client';
      import { filesScenario } from './files-scenario.mjs';
      export default {
        async fetch() { return Response.json(await filesScenario({ gen, baseUrl: ${JSON.stringify(baseUrl)} })); },
      };`;
    const run = async (worker: Worker) => (await worker.dispatchFetch('http://worker.test/')).json();
    return inWorkerd(project, code, run) as Promise<Step[]>;
  });
}

export const suites: Suite[] = [
  asProgram('files in Node', process.execPath, []),
  asProgram('files in Node with permissions', process.execPath, [
    '--permission',
    '--allow-fs-read=*',
    `--allow-fs-write=${join(tmpdir(), '*')}`,
  ]),
  { name: 'files in Yarn PnP', run: inYarnPnp },
  asProgram('files in Bun', tool('bun'), []),
  asProgram('files in Deno', tool('deno'), ['run', '--allow-all', '--quiet']),
  { name: 'files in workerd', run: asWorker },
];
