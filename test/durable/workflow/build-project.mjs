// Builds a project as Vercel's integrations do: the workflow's and the steps' bundles, and the routes in client form.
// Run in the project's folder, with the packages of this one.
import { workflowTransformPlugin } from '@workflow/rollup';
import { buildWorkflowTests } from '@workflow/vitest';
import { build } from 'esbuild';

await buildWorkflowTests();
const { transform } = workflowTransformPlugin();
const client = {
  name: 'client form',
  setup(setup) {
    setup.onLoad({ filter: /vercel-[a-z]+\.ts$/ }, async ({ path }) => {
      const { readFile } = await import('node:fs/promises');
      const code = await readFile(path, 'utf8');
      const made = await transform(code, path);
      return { contents: made?.code ?? code, loader: made ? 'js' : 'ts' };
    });
  },
};
const shared = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  packages: 'external',
  plugins: [client],
};
await build({ ...shared, entryPoints: ['vercel-routes.ts'], outfile: '.routes/routes.mjs' });
