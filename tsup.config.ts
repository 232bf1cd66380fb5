import { existsSync, rmSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { transform } from 'esbuild';
import { defineConfig, type Options } from 'tsup';

/** Each door of the package with the file behind it. A door that has no source yet is left out. */
const DOORS: Record<string, string> = Object.fromEntries(
  Object.entries({
    index: 'src/index.ts',
    webhooks: 'src/webhooks/index.ts',
    node: 'src/node/index.ts',
    sandbox: 'src/sandbox/index.ts',
    redis: 'src/redis/index.ts',
    'ai-sdk': 'src/ai-sdk/index.ts',
    bullmq: 'src/bullmq/index.ts',
  }).filter(([, file]) => existsSync(file)),
);

/** The bin runs as a module only, so it needs no CommonJS form. */
const CLI: Record<string, string> = existsSync('src/cli/index.ts') ? { cli: 'src/cli/index.ts' } : {};

/**
 * Node's built-in modules, where a bundled package or the sandbox's port asks for them: taken when they are needed, so that
 * no `import 'node:http'` stands in a door which Workers and browsers load, and CommonJS packages fit into a module.
 */
const builtInsOnDemand: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'built-ins-on-demand',
  setup(build) {
    const names = builtinModules.join('|');
    build.onResolve({ filter: new RegExp(`^(node:)?(${names})$`) }, ({ path, importer }) =>
      /[\\/](node_modules|sandbox)[\\/]/.test(importer)
        ? { path: path.replace(/^node:/, ''), namespace: 'built-in' }
        : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'built-in' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('node:${path}');`,
    }));
  },
};

const shared: Options = {
  outDir: 'dist',
  format: 'esm',
  target: 'es2022',
  platform: 'node',
  splitting: true,
  sourcemap: true,
  metafile: true,
  esbuildPlugins: [builtInsOnDemand],
  esbuildOptions(options) {
    // The build that asks nothing of Node: the sandbox's door is for Workers too.
    options.alias = { fflate: 'fflate/browser' };
  },
  dts: false,
  // Workers, Deno and Bun know `node:fs` and not `fs`.
  removeNodeProtocol: false,
  clean: false,
};

export default defineConfig((flags) => {
  const types = (flags as { dts?: boolean }).dts !== false;
  if (types) rmSync('dist', { recursive: true, force: true });
  return [
    { ...shared, entry: { ...DOORS, ...CLI } },
    {
      ...shared,
      name: 'cjs',
      entry: DOORS,
      outExtension: () => ({ js: '.cjs' }),
      // ESM-only, and `require` of ESM came with Node 22.12: bundled, so that CommonJS works on every 22.
      noExternal: ['ky', 'p-retry', 'is-network-error'],
      plugins: [commonJsChunks],
    },
    ...(types ? [declarations] : []),
  ];
});

/** esbuild splits modules only; each chunk becomes CommonJS afterwards, so that the doors share code there too. */
const commonJsChunks: NonNullable<Options['plugins']>[number] = {
  name: 'common-js-chunks',
  async renderChunk(code, { path }) {
    const built = await transform(code, {
      format: 'cjs',
      platform: 'node',
      target: 'node22',
      sourcemap: 'external',
      sourcefile: path,
      // Bundlers and test runners follow a `require` where they would stumble over `import()` in CommonJS.
      supported: { 'dynamic-import': false },
    });
    return { code: built.code, map: built.map };
  },
};

/** One set of declarations serves both module systems (see scripts/finish-build.ts). */
const declarations: Options = {
  outDir: 'dist',
  entry: DOORS,
  format: 'cjs',
  clean: false,
  dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0', stripInternal: true, types: ['node'] } },
};
