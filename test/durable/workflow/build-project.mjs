// Builds the project in the current folder, as Vercel's integrations do: the bundles of the workflow and its steps, and the routes
// in client form. Uses the packages of this folder.
import { readFile } from 'node:fs/promises';
import { workflowTransformPlugin } from '@workflow/rollup';
import { buildWorkflowTests } from '@workflow/vitest';
import { build } from 'esbuild';

await buildWorkflowTests();
const { transform } = workflowTransformPlugin();
const client = {
  name: 'client form',
  setup(setup) {
    setup.onLoad({ filter: /vercel-[a-z]+\.ts$/ }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const transformed = await transform(code, path);
      return { contents: transformed?.code ?? code, loader: transformed ? 'js' : 'ts' };
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
