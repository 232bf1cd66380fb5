// The scenario in workerd with an old and a new compatibility date, and in the Edge runtime. Neither resolves packages, so both
// run bundles.
import { esbuild, runInWorkerd, writeEntry } from './bundle.js';
import { assertSteps, type Context, importTool, type Step, type Suite } from './suite.js';

/** With this date, `cache: 'no-store'` throws, and a redirect to another origin retains the API key. */
const OLD_DATE = '2023-03-01';
const NEW_DATE = '2026-07-01';

async function runScenarioInWorkerd({ project, service }: Context, compatibilityDate: string): Promise<void> {
  const code = `import { runScenario } from './scenario.mjs';
    export default { async fetch() { return Response.json(await runScenario(${JSON.stringify(service.config)})); } };`;
  await runInWorkerd(
    project,
    code,
    async (worker) => {
      const response = await worker.dispatchFetch('http://worker.test/');
      assertSteps((await response.json()) as Step[]);
    },
    { compatibilityDate },
  );
}

interface EdgeVm {
  evaluate<T>(code: string): T;
}

async function runInEdgeVm({ project, service }: Context): Promise<void> {
  const entry = writeEntry(
    project,
    'edge.mjs',
    "import { runScenario } from './scenario.mjs';\nglobalThis.runScenario = runScenario;",
  );
  const script = await esbuild(project, entry, 'worker');
  const { EdgeVM } = await importTool<{ EdgeVM: new () => EdgeVm }>('@edge-runtime/vm');
  const vm = new EdgeVM();
  vm.evaluate(`(() => { ${script} })()`);
  assertSteps(await vm.evaluate<Promise<Step[]>>(`globalThis.runScenario(${JSON.stringify(service.config)})`));
}

export const suites: Suite[] = [
  { name: `workerd of ${OLD_DATE}`, run: (context) => runScenarioInWorkerd(context, OLD_DATE) },
  { name: `workerd of ${NEW_DATE}`, run: (context) => runScenarioInWorkerd(context, NEW_DATE) },
  { name: 'Edge runtime VM', run: runInEdgeVm },
];
