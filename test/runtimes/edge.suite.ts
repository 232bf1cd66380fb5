// workerd with an old and a new compatibility date, and the Edge runtime's VM: bundled, as there are no packages there.

import { esbuild, writeEntry } from './bundle.js';
import { type Context, judge, need, type Step, type Suite } from './suite.js';

/** Old enough that `cache: 'no-store'` throws and a redirect to another origin keeps the key. */
const OLD_DATE = '2023-03-01';
const NEW_DATE = '2026-07-01';

interface Miniflare {
  dispatchFetch(url: string): Promise<Response>;
  dispose(): Promise<void>;
}

async function inWorkerd({ project, service }: Context, compatibilityDate: string): Promise<void> {
  const entry = writeEntry(
    project,
    'worker.mjs',
    `import { runScenario } from './scenario.mjs';
     export default { async fetch() { return Response.json(await runScenario(${JSON.stringify(service.config)})); } };`,
  );
  const script = await esbuild(project, entry, 'worker');
  const { Miniflare } = await need<{ Miniflare: new (options: object) => Miniflare }>('miniflare');
  const worker = new Miniflare({ modules: true, script, compatibilityDate });
  try {
    judge((await (await worker.dispatchFetch('http://worker.test/')).json()) as Step[]);
  } finally {
    await worker.dispose();
  }
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

/** The edge. */
export const suites: Suite[] = [
  { name: `workerd of ${OLD_DATE}`, run: (context) => inWorkerd(context, OLD_DATE) },
  { name: `workerd of ${NEW_DATE}`, run: (context) => inWorkerd(context, NEW_DATE) },
  { name: 'Edge runtime VM', run: inEdgeVm },
];
