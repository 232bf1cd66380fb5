import ts from 'typescript';
import type { Law } from './source.js';
import { eachNode, importsOf, walk } from './source.js';

/** Who may import a package; everything else is refused. `sandbox/` and `cli/` are bundled, so nothing of it is installed. */
const IMPORTERS: Readonly<Record<string, RegExp>> = {
  ky: /^src\/transport\/http\.ts$/,
  'p-retry': /^src\/transport\/layers\/retry\.ts$/,
  '@noble/hashes':
    /^src\/(store\/account|transport\/idempotency|((adapters\/(storage|otel))|runtime|uploading)\/[a-z0-9-]+)\.ts$/,
  'zod/mini':
    /^src\/(schemas\/|sandbox\/|adapters\/durable\/|(ledger\/create-budget|adapters\/cloudflare\/durable-object-store|store\/rate-limits)\.ts$|([a-z0-9-]+\/)+[a-z0-9-]*options\.ts$)/,
  'zod/v4/core': /^src\/schemas\//,
  zod: /^src\/adapters\/schemas\//,
  hono: /^src\/sandbox\//,
  '@hono/node-server': /^src\/sandbox\/http\/serve\.ts$/,
  'fast-png': /^src\/sandbox\/media\//,
  mediabunny: /^src\/sandbox\/media\//,
  '@ai-sdk/provider': /^src\/adapters\/ai-sdk\//,
  bullmq: /^src\/adapters\/bullmq\//,
  ioredis: /^src\/adapters\/bullmq\//,
  react: /^src\/adapters\/react\//,
  'cloudflare:workers': /^src\/adapters\/cloudflare\//,
  '@opentelemetry/api': /^src\/adapters\/otel\//,
  aws4fetch: /^src\/adapters\/storage\/s3\.ts$/,
};

/** Where Node's own modules may be imported: the client runs on the edge too. */
const NODE_MODULES = /^src\/(adapters\/node\/|cli\/|sandbox\/http\/serve\.ts$)/;
/** What the command line bundles beside the rest: its parser and its progress bar. */
const CLI_PACKAGES = /^src\/cli\//;

/** Law 3: ky in one file, p-retry in one file, zod in the schemas, Node's modules at the edge of the house. */
export const packagesHaveOneImporter: Law = (sources) =>
  sources.flatMap(importsOf).flatMap(({ from, specifier, target, line }) => {
    const message = target === undefined ? refusal(from.path, specifier) : relativeForm(specifier);
    return message === undefined ? [] : [{ path: from.path, line, message }];
  });

function refusal(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('node:')) return NODE_MODULES.test(path) ? undefined : `${specifier} is not for ${path}`;
  const name = Object.keys(IMPORTERS).find((known) => specifier === known || specifier.startsWith(`${known}/`));
  if (name !== undefined) return IMPORTERS[name]?.test(path) ? undefined : `${name} is not for ${path}`;
  return CLI_PACKAGES.test(path) ? undefined : `${specifier} is in no list of test/architecture/importers.ts`;
}

function relativeForm(specifier: string): string | undefined {
  return specifier.endsWith('.js') ? undefined : `${specifier} must end in .js`;
}

const ENVIRONMENT = /^src\/((client|transport)\/config\.ts|cli\/)/;
const RUNTIME_OBJECTS = /^(globalThis\.)?(process|Deno|Bun|import\.meta)$/;

/** Law 3: the environment is read in config.ts and the command line. */
export const environmentHasOneReader = eachNode((node, { path }) => {
  if (!ts.isPropertyAccessExpression(node) || node.name.text !== 'env' || ENVIRONMENT.test(path)) return undefined;
  const owner = node.expression.getText().replaceAll('?', '');
  return RUNTIME_OBJECTS.test(owner) ? `${owner}.env is read in client/config.ts and cli/ only` : undefined;
});

const NODE_GLOBALS = ['process', 'Buffer', 'require', 'module', '__dirname', '__filename', 'global'];

/** Globals that only Node has: on the edge each of them is a ReferenceError. */
export const nodeGlobalsStayOut = eachNode((node, { path, ast }) => {
  if (!ts.isIdentifier(node) || NODE_MODULES.test(path) || !isFreeName(node)) return undefined;
  return NODE_GLOBALS.includes(node.text) && !declares(ast, node.text)
    ? `${node.text} is Node's own; go through globalThis or do without`
    : undefined;
});

/** The page runs in a browser and shares no code with the rest. */
const TIME_KEEPERS = /^src\/(runtime\/clock\.ts|sandbox\/world\/real-time\.ts|adapters\/page\/)/;
const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'requestAnimationFrame', 'performance'];

/** Law 4: time comes from a clock that a test can hold. */
export const timeHasAClock = eachNode((node, { path }) => {
  if (TIME_KEEPERS.test(path)) return undefined;
  if (ts.isIdentifier(node) && TIMERS.includes(node.text) && isFreeName(node)) return `${node.text} outside of a clock`;
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && !node.arguments?.length) {
    return 'new Date() outside of a clock';
  }
  if (!ts.isPropertyAccessExpression(node)) return undefined;
  const called = node.getText();
  return called === 'Date.now' || called === 'AbortSignal.timeout' ? `${called} outside of a clock` : undefined;
});

const RANDOM_SOURCES = /^src\/(runtime\/clock\.ts|sandbox\/world\/random\.ts|adapters\/page\/)/;

/** Law 4: chance comes from one place, so that a simulation can seed it. */
export const chanceHasASource = eachNode((node, { path }) => {
  if (RANDOM_SOURCES.test(path) || !ts.isPropertyAccessExpression(node)) return undefined;
  const called = node.getText().replace(/^globalThis\./, '');
  return /^(Math\.random|crypto\.(randomUUID|getRandomValues))$/.test(called)
    ? `${called} outside of runtime/clock.ts`
    : undefined;
});

/** Whether a file has a variable or a parameter of this name. */
function declares(file: ts.SourceFile, name: string): boolean {
  let found = false;
  walk(file, (node) => {
    const binds = ts.isParameter(node) || ts.isVariableDeclaration(node) || ts.isBindingElement(node);
    if (binds && node.name.getText() === name) found = true;
  });
  return found;
}

/** Whether a name stands for a global: not a property, a member, a parameter or a key. */
function isFreeName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isQualifiedName(parent)) return parent.left === node;
  if (ts.isTypeReferenceNode(parent)) return false;
  return !('name' in parent && parent.name === node);
}
