// workerd with an old and a new compatibility date, and the Edge runtime's VM: bundled, as there are no packages there.

import { esbuild, inWorkerd, type Worker, writeEntry } from './bundle.js';
import { type Context, judge, need, type Step, type Suite } from './suite.js';

/** Old enough that `cache: 'no-store'` throws and a redirect to another origin retains the key. */
const OLD_DATE = '2023-03-01';
const NEW_DATE = '2026-07-01';

async function asWorker({ project, service }: Context, compatibilityDate: string): Promise<void> {
  const code = `import { runScenario } from './scenario.mjs';
    export default { async fetch() { return Response.json(await runScenario(${JSON.stringify(service.config)})); } };`;
  const run = async (worker: Worker) => (await worker.dispatchFetch('http://worker.test/')).json();
  judge((await inWorkerd(project, code, run, { compatibilityDate })) as Step[]);
}

interface EdgeVm {
  evaluate<T>(code: string): T;
}

async function inEdgeVm({ project, service }: Context): Promise<void> {
  const entry = writeEntry(
    project,
    'edge.mjs',
    "import { runScenario } from './scenario.mjs';\nglobalThis.runScenario = runScenario;",
  );
  const script = await esbuild(project, entry, 'worker');
  const { EdgeVM } = await need<{ EdgeVM: new () => EdgeVm }>('@edge-runtime/vm');
  const vm = new EdgeVM();
  vm.evaluate(`(() => { ${script} })()`);
  judge(await vm.evaluate<Promise<Step[]>>(`globalThis.runScenario(${JSON.stringify(service.config)})`));
}

export const suites: Suite[] = [
  { name: `workerd of ${OLD_DATE}`, run: (context) => asWorker(context, OLD_DATE) },
  { name: `workerd of ${NEW_DATE}`, run: (context) => asWorker(context, NEW_DATE) },
  { name: 'Edge runtime VM', run: inEdgeVm },
];
