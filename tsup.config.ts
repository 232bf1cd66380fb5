import { rmSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { transform } from 'esbuild';
import { defineConfig, type Options } from 'tsup';

/** The doors that a program's own code opens: they share their code. */
const CORE = {
  index: 'src/index.ts',
  webhooks: 'src/webhooks/index.ts',
  node: 'src/node/index.ts',
  redis: 'src/redis/index.ts',
  'ai-sdk': 'src/ai-sdk/index.ts',
  bullmq: 'src/bullmq/index.ts',
};

/** No door: a file of its own, so that a bundler drops it with its tables where nobody asks for an extension. */
const APART = { 'extension-for': 'src/downloading/extension-for.ts' };

/** Built apart: what it shared with the core would cut that into more files, and every import of it would pay for them. */
const SANDBOX = { sandbox: 'src/sandbox/index.ts' };

/** What the command line uses of the sandbox beside its door. */
const SERVE = { 'sandbox-serve': 'src/sandbox/serve.ts' };

/** The bin runs as a module only, so it needs no CommonJS form. */
const CLI = { cli: 'src/cli/index.ts' };

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
  // The sources are in the package too, and the maps lead there: white space would only be carried around twice.
  minifyWhitespace: true,
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
  const commonJs: Options = {
    ...shared,
    outExtension: () => ({ js: '.cjs' }),
    // ESM-only, and `require` of ESM came with Node 22.12: bundled, so that CommonJS works on every 22.
    noExternal: ['ky', 'p-retry', 'is-network-error'],
    plugins: [commonJsChunks],
  };
  return [
    {
      ...shared,
      name: 'core',
      entry: { ...CORE, ...CLI, ...APART },
      esbuildPlugins: [builtInsOnDemand, sandboxApart],
      plugins: [smallBin, withoutBareImports],
    },
    { ...shared, ...namedAfterSandbox, name: 'sandbox', entry: { ...SANDBOX, ...SERVE } },
    { ...commonJs, name: 'core-cjs', entry: CORE },
    { ...commonJs, ...namedAfterSandbox, name: 'sandbox-cjs', entry: SANDBOX },
    ...(types ? [declarations] : []),
  ];
});

/** The command line opens the sandbox's own files, and brings no second copy of them. */
const sandboxApart: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'sandbox-apart',
  setup({ onResolve }) {
    onResolve({ filter: /\/sandbox\/index\.js$/ }, () => ({ path: './sandbox.js', external: true }));
    onResolve({ filter: /\/sandbox\/serve\.js$/ }, () => ({ path: './sandbox-serve.js', external: true }));
  },
};

/** Every file of the sandbox's door says so by its name. */
const namedAfterSandbox: Options = {
  esbuildOptions(options, context) {
    shared.esbuildOptions?.(options, context);
    options.chunkNames = 'sandbox-[name]-[hash]';
  },
};

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
      minifyWhitespace: true,
      minifySyntax: true,
      // Bundlers and test runners follow a `require` where they would stumble over `import()` in CommonJS.
      supported: { 'dynamic-import': false },
    });
    return { code: built.code, map: built.map };
  },
};

/**
 * esbuild keeps a bare `import './chunk'` for the order of effects. There are none here, and a bundler would load such a file
 * at once although only a later `import()` needs it. Blanks take its place, so that the source maps still fit.
 */
const withoutBareImports: NonNullable<Options['plugins']>[number] = {
  name: 'without-bare-imports',
  renderChunk: (code) => ({
    code: code.replace(/\bimport"\.\/[^"]+\.js";/g, (found) => ' '.repeat(found.length)),
  }),
};

/** Nobody imports the bin: it is minified, with what it bundles. */
const smallBin: NonNullable<Options['plugins']>[number] = {
  name: 'small-bin',
  async renderChunk(code, { path }) {
    if (!path.endsWith('cli.js')) return undefined;
    const built = await transform(code, {
      minify: true,
      keepNames: false,
      target: 'node22',
      sourcemap: 'external',
      sourcefile: path,
    });
    return { code: built.code, map: built.map };
  },
};

/** One set of declarations serves both module systems (see scripts/finish-build.ts). */
const declarations: Options = {
  outDir: 'dist',
  entry: { ...CORE, ...SANDBOX },
  format: 'cjs',
  clean: false,
  dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0', stripInternal: true, types: ['node'] } },
};
