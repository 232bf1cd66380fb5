// The rules of the source tree. biome.json covers sizes of files and functions, `any`, `!`, `enum`, default exports,
// `export *`, file names, console, and Node's globals and timers.
import ts from 'typescript';
import { expect, test } from 'vitest';
import { ENTRY_POINTS, sourceOf } from '../scripts/entry-points.js';
import { importsOf, locationOf, nodesOf, sourcesIn } from './support/sources.js';

const sources = sourcesIn('src');
const imports = sources.flatMap(importsOf);
const nodes = sources.flatMap(({ path, ast }) => nodesOf(ast).map((node) => ({ path, node })));

/** Lowest first: a file may import from its own unit and from earlier ones. Type imports count. */
const LAYERS = [
  ...['runtime', 'catalog', 'schemas', 'errors', 'rules', 'store', 'uploading', 'webhooks', 'transport'],
  ...['downloading', 'waiting', 'client', 'ledger', 'adapters', 'index', 'cli'],
];
/** The sandbox is a separate stack, the other side of the wire. It shares only the contract. */
const SANDBOX_LAYERS = ['media', 'world', 'service', 'http', 'control', ''].map((name) => `sandbox/${name}`);
const SHARED_WITH_SANDBOX =
  /^src\/(store\/port\.ts$|schemas\/|errors\/|rules\/|runtime\/|catalog\.ts$|(webhooks\/signature|uploading\/image-size)\.ts$)/;
const CLIENT = 'src/client/client.ts';
const SANDBOX_ENTRY = 'src/sandbox/index.ts';
/** Durable runs copy files, and the proxy serves them. A page uses its proxy's types, and the React hook uses the page. */
const BETWEEN_ADAPTERS = ['durable -> storage', 'proxy -> storage', 'page -> proxy', 'react -> page'];

/** `client` of src/client/client.ts, `catalog` of src/catalog.ts, `sandbox/world` of src/sandbox/world/state.ts. */
function unitOf(path: string): string {
  const inSandbox = /^src\/(sandbox\/(?:[^/]+(?=\/))?)/.exec(path)?.[1];
  return inSandbox ?? path.replace(/^src\//, '').replace(/(\/.*|\.ts)$/, '');
}

function isAllowed(from: string, to: string): boolean {
  const [unit, other] = [unitOf(from), unitOf(to)];
  if (unit === 'adapters' && other === 'adapters') {
    const [adapter, otherAdapter] = [from.split('/')[2], to.split('/')[2]];
    return adapter === otherAdapter || BETWEEN_ADAPTERS.includes(`${adapter} -> ${otherAdapter}`);
  }
  if (unit === other) return true;
  const [floor, below] = [SANDBOX_LAYERS.indexOf(unit), SANDBOX_LAYERS.indexOf(other)];
  if (floor >= 0 && below >= 0) return below < floor;
  if (floor >= 0) return SHARED_WITH_SANDBOX.test(to) || (from === SANDBOX_ENTRY && to === CLIENT);
  if (below >= 0) return unit === 'cli';
  return LAYERS.includes(unit) && LAYERS.includes(other) && LAYERS.indexOf(other) < LAYERS.indexOf(unit);
}

/** Returns the imports within the source that violate a rule. */
const findViolations = (breaks: (edge: { readonly from: string; readonly target: string }) => boolean) =>
  imports.flatMap(({ from, target }) =>
    target !== undefined && breaks({ from, target }) ? [`${from} must not import ${target}`] : [],
  );

test('imports point down', () => {
  expect(findViolations(({ from, target }) => !isAllowed(from, target))).toEqual([]);
});

test('there are no import cycles, including type imports', () => {
  const visited = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]) => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
    if (visited.has(path)) return;
    visited.add(path);
    for (const { from, target } of imports) if (from === path && target !== undefined) visit(target, [...trail, path]);
  };
  for (const { path } of sources) visit(path, []);
  expect(cycles).toEqual([]);
});

/** Files shared by namespaces. Each other file of the folder is a namespace. */
const SHARED_BY_NAMESPACES =
  /^src\/client\/(client-options|config|create(-options)?|endpoint|execute-run|resume-options|run-(calls|job))\.ts$/;

test('only entry points import the client, and namespaces never import each other', () => {
  const isEntry = (path: string) => path === SANDBOX_ENTRY || /^src\/(client\/|adapters\/|cli\/|index\.ts)/.test(path);
  const isNamespace = (path: string) => path.startsWith('src/client/') && !SHARED_BY_NAMESPACES.test(path);
  const breaks = findViolations(({ from, target }) =>
    target === CLIENT ? !isEntry(from) : isNamespace(target) && from.startsWith('src/client/') && from !== CLIENT,
  );
  expect(breaks).toEqual([]);
});

/** In addition to entry points: time, JSON objects, messages, whether a create may have a job, and a store's ledger. */
const SHARED_WITH_CLI =
  /^src\/(cli\/|ledger\/(ledger|resume)\.ts$|runtime\/|schemas\/(envelope|format-value|spelling)\.ts$|rules\/failure-kind\.ts$)/;

test('the CLI uses the public API', () => {
  const entries = ENTRY_POINTS.map(sourceOf);
  const isPublic = (target: string) => SHARED_WITH_CLI.test(target) || entries.includes(target);
  expect(findViolations(({ from, target }) => from.startsWith('src/cli/') && !isPublic(target))).toEqual([]);
});

test('only a store or a budget includes the ledger', () => {
  const isCode = ({ node }: { readonly node: ts.Node }) =>
    (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && !/^(import|export) type /.test(node.getText());
  const wrong = nodes.filter(
    (it) =>
      /^src\/(transport|waiting|client)\//.test(it.path) &&
      isCode(it) &&
      /\/(ledger\/|rules\/(ledger[\w-]*|create-entry|budget)\.js)/.test(it.node.getText()),
  );
  expect(wrong.map(({ node }) => `${locationOf(node)} ${node.getText()}`)).toEqual([]);
});

/** The files that may import each package. `sandbox/` and `cli/` are bundled, so their packages aren't installed. */
const IMPORTERS: Readonly<Record<string, RegExp>> = {
  'node:': /^src\/(adapters\/node\/|cli\/|sandbox\/http\/serve\.ts$)/,
  ky: /^src\/transport\/http\.ts$/,
  'p-retry': /^src\/transport\/layers\/retry\.ts$/,
  'zod/v4/core': /^src\/rules\/options\.ts$/,
  'zod/mini': /^src\/sandbox\//,
  zod: /^src\/adapters\/schemas\//,
  hono: /^src\/sandbox\//,
  '@hono/node-server': /^src\/sandbox\/http\/serve\.ts$/,
  'fast-png': /^src\/sandbox\/media\//,
  '@ai-sdk/provider': /^src\/adapters\/ai-sdk\//,
  bullmq: /^src\/adapters\/bullmq\//,
  react: /^src\/adapters\/react\//,
  'cloudflare:workers': /^src\/adapters\/cloudflare\//,
  '@opentelemetry/api': /^src\/adapters\/otel\//,
  aws4fetch: /^src\/adapters\/storage\/s3\.ts$/,
  commander: /^src\/cli\//,
  'log-update': /^src\/cli\/live-line\.ts$/,
  'csv-parse': /^src\/cli\//,
};

test('only allowed files import each package and Node', () => {
  const wrong = imports.filter(({ from, specifier, target }) => {
    const name = Object.keys(IMPORTERS).find(
      (known) => specifier === known || specifier.startsWith(known.endsWith(':') ? known : `${known}/`),
    );
    return target === undefined && !(name !== undefined && IMPORTERS[name]?.test(from));
  });
  expect(wrong.map(({ from, specifier }) => `${specifier} is not for ${from}`)).toEqual([]);
});

/** Returns the nodes that violate a rule, with position and text. */
function breaches(isAllowedIn: RegExp, breaks: (node: ts.Node) => boolean): string[] {
  return nodes
    .filter(({ path, node }) => !isAllowedIn.test(path) && breaks(node))
    .map(({ node }) => `${locationOf(node)} ${node.getText().split('\n')[0]}`);
}

test('only one file reads the environment', () => {
  const env = /^(globalThis\.)?(process|Deno|Bun|import\.meta)\??\.env$/;
  expect(
    breaches(
      /^src\/((client|transport)\/config\.ts|cli\/)/,
      (node) => ts.isPropertyAccessExpression(node) && env.test(node.getText()),
    ),
  ).toEqual([]);
});

/** The page runs in a browser and shares no code with the client. */
const CLOCKS = /^src\/(runtime\/clock|sandbox\/world\/(timeline|random)|webhooks\/verify|adapters\/page\/.*)/;

test('time comes from a clock that tests can control, and randomness from one place', () => {
  const called = /^(globalThis\.)?(Date\.now|AbortSignal\.timeout|Math\.random|crypto\.(randomUUID|getRandomValues))$/;
  const readsClock = (node: ts.Node) =>
    (ts.isNewExpression(node) && node.getText() === 'new Date()') ||
    (ts.isPropertyAccessExpression(node) && called.test(node.getText()));
  expect(breaches(CLOCKS, readsClock)).toEqual([]);
});

test('rules are pure, and import only facts about the service', () => {
  const allowed = /^src\/((rules|schemas|errors)\/|catalog\.ts$)/;
  const foreign = imports.filter(
    ({ from, specifier, target = specifier }) =>
      from.startsWith('src/rules/') &&
      !allowed.test(target) &&
      !(from === 'src/rules/options.ts' && target === 'zod/v4/core'),
  );
  expect(foreign.map(({ from, specifier }) => `${from}: a rule must not import ${specifier}`)).toEqual([]);
  const waits = (node: ts.Node) => ts.isAwaitExpression(node) || node.kind === ts.SyntaxKind.AsyncKeyword;
  const impure = (node: ts.Node) => ts.isIdentifier(node) && /^(crypto|fetch|performance|Promise)$/.test(node.text);
  const isValue = ({ parent }: ts.Node) => !ts.isTypeReferenceNode(parent) && !ts.isPropertyAccessExpression(parent);
  expect(breaches(/^src\/(?!rules\/)/, (node) => waits(node) || (impure(node) && isValue(node)))).toEqual([]);
});

/** In addition to rules/: the sandbox, the error classes, and the adapters of a page and of object stores. */
const MAY_COMPARE_STATUSES =
  /^src\/(rules\/|sandbox\/|errors\/|adapters\/(page\/|storage\/(store-responses|page-failure)\.ts$))/;

test('only rules/ compares a status', () => {
  const isStatus = (node: ts.Node) => ts.isNumericLiteral(node) && /^[1-5]\d\d$/.test(node.getText());
  const compares = (node: ts.Node) => {
    if (ts.isBinaryExpression(node) && /^([=!]==?|[<>]=?)$/.test(node.operatorToken.getText()))
      return [node.left, node.right].some(isStatus) && /status\b/i.test(node.getText());
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
    const { name, expression } = node.expression;
    return name.text === 'includes' && ts.isArrayLiteralExpression(expression) && expression.elements.some(isStatus);
  };
  expect(breaches(MAY_COMPARE_STATUSES, compares)).toEqual([]);
});

test('only rules/ contains documented numbers', () => {
  const documented = /^(0\.05|30 \* 60_000|1_?800_?000)$/;
  const fields = /^(limit|windowMs|toleranceSeconds|IMAGE|VIDEO|AUDIO)$/;
  const isDocumented = (node: ts.Node) =>
    ts.isPropertyAssignment(node)
      ? fields.test(node.name.getText()) && Number(node.initializer.getText()) > 1
      : (ts.isNumericLiteral(node) || ts.isBinaryExpression(node)) && documented.test(node.getText());
  expect(breaches(/^src\/(rules|sandbox)\//, isDocumented)).toEqual([]);
});

test('nothing bypasses the compiler', () => {
  const hides = (node: ts.Node) =>
    (ts.isAsExpression(node) && /\bas unknown\)?$/.test(node.expression.getText())) ||
    ((ts.isPropertyDeclaration(node) || ts.isVariableDeclaration(node)) && node.exclamationToken !== undefined) ||
    (ts.isCallExpression(node) && node.expression.getText() === 'Object');
  expect(breaches(/^$/, hides)).toEqual([]);
  expect(
    sources.flatMap(({ path, ast }) => (/@ts-(ignore|expect-error|nocheck)/.test(ast.text) ? [path] : [])),
  ).toEqual([]);
});

test('no module has mutable state, except the account registry', () => {
  const isEmpty = (node: ts.Node | undefined) =>
    node !== undefined && /^(new (Map|Set|Array)(<.*>)?\(\)|\[\]|\{\})$/s.test(node.getText());
  const changes = (node: ts.Node) => {
    if (ts.isPropertyDeclaration(node)) return /^static (?!readonly)/.test(node.getText());
    if (!ts.isVariableDeclaration(node) || !ts.isSourceFile(node.parent.parent.parent)) return false;
    return (node.parent.flags & ts.NodeFlags.Const) === 0 || isEmpty(node.initializer);
  };
  expect(breaches(/^src\/store\/account\.ts$/, changes)).toEqual([]);
});

/** Types that count as one port. All other functions accept at most five functions from their caller. */
const SERVICES = ['Transport', 'Core', 'JobWaits', 'UploadSteps', 'SandboxService', 'Terminal', 'Characters'];

test('a function accepts at most five ports', () => {
  const functionsIn = (members: readonly ts.TypeElement[]) =>
    members.filter((one) => ts.isMethodSignature(one) || (ts.isPropertySignature(one) && isFunction(one.type))).length;
  const isFunction = (type: ts.TypeNode | undefined) => type !== undefined && ts.isFunctionTypeNode(type);
  const ports = new Map(
    nodes.flatMap(({ node }) => (ts.isInterfaceDeclaration(node) ? [[node.name.text, functionsIn(node.members)]] : [])),
  );
  const portsIn = ({ type }: ts.ParameterDeclaration) => {
    if (type !== undefined && ts.isTypeLiteralNode(type)) return functionsIn(type.members);
    const name = type !== undefined && ts.isTypeReferenceNode(type) ? type.typeName.getText() : '';
    return SERVICES.includes(name) ? 1 : (ports.get(name) ?? 0);
  };
  const isCallable = (node: ts.Node) => ts.isFunctionDeclaration(node) || ts.isConstructorDeclaration(node);
  expect(breaches(/^$/, (node) => ts.isParameter(node) && isCallable(node.parent) && portsIn(node) > 5)).toEqual([]);
});

test('each exported name has one meaning', () => {
  const exported = /^export (?:(?:declare|async|abstract) )*(?:const|function\*?|class|interface|type) (\w+)/gm;
  const names = sources.flatMap(({ ast }) => [...new Set([...ast.text.matchAll(exported)].map(([, name]) => name))]);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
