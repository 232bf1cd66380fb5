// Every method, entry point, hook, and folder is in all places that must list it.
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { ENTRY_POINTS, sourceOf } from '../scripts/entry-points.js';
import { MODELS, type ModelCapabilities } from '../src/catalog.js';
import { HOOKS } from '../src/transport/events.js';
import { areas, testsOf } from './areas.js';
import endpoints from './fixtures/endpoints.json' with { type: 'json' };
import { ROOT } from './support/build.js';

const read = (file: string) => readFileSync(ROOT + file, 'utf8');
const lines = (file: string) => read(file).split('\n');
const guides = readdirSync(`${ROOT}docs`).flatMap((file) => (file.endsWith('.md') ? [read(`docs/${file}`)] : []));

/** Returns the client's public methods as users call them, such as `videos.create`, its namespaces' types, and those of results. */
function publicMembers(): { methods: string[]; namespaces: string[]; results: string[] } {
  const file = `${ROOT}src/client/client.ts`;
  // Only names matter, so skip the types of the language and of Node.
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, noLib: true, types: [] };
  const program = ts.createProgram([file], options);
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  const client = module && checker.getExportsOfModule(module).find(({ name }) => name === 'GenClient');
  const membersOf = (type: ts.Type) =>
    type.getProperties().filter((member) => {
      const isHidden = member.getJsDocTags(checker).some(({ name }) => name === 'internal');
      const isOwn = member.declarations?.some((node) => node.getSourceFile().fileName.includes('/src/'));
      // JSON.stringify calls toJSON.
      return isOwn && !isHidden && /^(?!toJSON$)[a-z]\w*$/i.test(member.name);
    });
  const isNamed = (type: ts.Type) => {
    const declared = type.symbol?.declarations?.some(
      (node) => ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node),
    );
    return declared && type.symbol.declarations?.[0]?.getSourceFile().fileName.includes('/src/');
  };
  /** Returns the interfaces and classes in a declared result, such as `RequestPromise<Job>`. */
  const namesIn = (node: ts.Node): string[] => {
    // `Type['member']` doesn't name the type.
    if (ts.isIndexedAccessTypeNode(node)) return [];
    const nested: string[] = [];
    ts.forEachChild(node, (child) => void nested.push(...namesIn(child)));
    const type = ts.isTypeReferenceNode(node) ? checker.getTypeFromTypeNode(node) : undefined;
    return type && isNamed(type) ? [type.symbol.name, ...nested] : nested;
  };
  const resultsOf = (type: ts.Type) =>
    type.getCallSignatures().flatMap((signature) => namesIn(signature.getDeclaration().type ?? fail()));
  const namespaces: string[] = [];
  const results: string[] = [];
  const methods = membersOf(checker.getDeclaredTypeOfSymbol(client ?? fail())).flatMap((member) => {
    const type = checker.getTypeOfSymbol(member);
    results.push(...resultsOf(type));
    if (type.getCallSignatures().length > 0) return [member.name];
    namespaces.push(checker.typeToString(type));
    return membersOf(type).map((method) => {
      results.push(...resultsOf(checker.getTypeOfSymbol(method)));
      return `${member.name}.${method.name}`;
    });
  });
  return { methods, namespaces, results: [...new Set(results)] };
}

function fail(): never {
  throw new Error('src/client/client.ts exports no GenClient.');
}

describe('every public method of GenClient', () => {
  const { methods, namespaces, results } = publicMembers();
  /** Calls composed of others. */
  const isComposed = (name: string) => /AndWait$|^uploads\.upload$/.test(name);

  test("is in the type checker's list", () => {
    expect(methods).toEqual(expect.arrayContaining(['videos.createAndWait', 'jobs.output', 'waitForJob', 'resume']));
  });

  test('is in test/fixtures/endpoints.json if it is an endpoint', () => {
    const calls = methods.filter((name) => name.includes('.') && !isComposed(name));
    expect(endpoints.map(({ call }) => call).sort()).toEqual(calls.sort());
  });

  test("has its namespace's type in src/index.ts, for apps that emit declarations", () => {
    expect(namespaces).toContain('Voices');
    expect(namespaces.filter((name) => !new RegExp(`\\b${name}\\b`).test(read('src/index.ts')))).toEqual([]);
  });

  test("has its result's type in src/index.ts, for apps that emit declarations", () => {
    expect(results).toEqual(expect.arrayContaining(['RequestPromise', 'CreatedJob', 'VoiceList', 'JobUpdate']));
    expect(results.filter((name) => !new RegExp(`\\b${name}\\b`).test(read('src/index.ts')))).toEqual([]);
  });

  test('is used in test/types/every-method.ts', () => {
    const program = read('test/types/every-method.ts');
    expect(methods.filter((name) => !new RegExp(`\\.${name.replace('.', '\\.')}[(<]`).test(program))).toEqual([]);
  });

  test('is in CHANGELOG.md', () => {
    const actual = read('CHANGELOG.md');
    expect(
      methods.filter((name) => !isComposed(name) && !new RegExp(`\`(client\\.)?${name}[\`(]`).test(actual)),
    ).toEqual([]);
  });

  test("is in docs/calls.md, or in another guide if it is the client's own", () => {
    const rows = lines('docs/calls.md').filter((line) => line.startsWith('| `'));
    // A row may abbreviate a namespace's further methods: `characters.list` · `.get`.
    const isNamed = (name: string) => {
      const [namespace, method] = name.split('.');
      return method === undefined
        ? guides.some((guide) => new RegExp(`[.\`]${name}\\(`).test(guide))
        : rows.some((row) => row.includes(`\`${namespace}.`) && new RegExp(`[\`.]${method}\``).test(row));
    };
    expect(methods.filter((name) => !isNamed(name))).toEqual([]);
  });
});

describe('every entry point', () => {
  test.each(ENTRY_POINTS)('%s has a source, a row in AGENTS.md, a guide, and is in CHANGELOG.md', (name) => {
    expect(existsSync(ROOT + sourceOf(name))).toBe(true);
    const specifier = name === 'index' ? '`gen-client`' : `\`gen-client/${name}\``;
    expect(name === 'index' || read('CHANGELOG.md').includes(specifier), `CHANGELOG.md names ${specifier}`).toBe(true);
    expect(lines('AGENTS.md').filter((line) => line.startsWith('| ') && line.includes(specifier))).toHaveLength(1);
    const isNamed = new RegExp(`\\b${specifier.slice(1, -1)}(?![\\w/-])`);
    expect(
      guides.some((guide) => isNamed.test(guide)),
      `a guide names ${specifier}`,
    ).toBe(true);
  });

  test('is in package.json', () => {
    const adapters = readdirSync(`${ROOT}src/adapters`);
    expect([...ENTRY_POINTS].sort()).toEqual([...adapters, 'index', 'sandbox', 'webhooks'].sort());
  });
});

describe('every resolution', () => {
  const resolutionsOf = (kind: 'image' | 'video') =>
    Object.values<ModelCapabilities>(MODELS).flatMap((model) => (model.kind === kind ? model.resolutions : []));
  const missing = (names: readonly string[], text: string | undefined) =>
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text ?? ''));

  test('of a model is in the help of the command line', () => {
    const help = read('src/cli/commands/create.ts')
      .match(/'--resolution <name>',\s*'.*'/g)
      ?.join();
    expect(missing(resolutionsOf('video'), help)).toEqual([]);
    expect(missing(resolutionsOf('image'), help)).toEqual([]);
  });

  test("of a video model is in the AI SDK provider's table of sizes and in its warning", () => {
    const settings = read('src/adapters/ai-sdk/settings.ts');
    expect(missing(resolutionsOf('video'), /RESOLUTION_OF\b.*?\};/s.exec(settings)?.[0])).toEqual([]);
    expect(missing(resolutionsOf('video'), /is not one of .*p,.*/.exec(settings)?.[0])).toEqual([]);
  });
});

test('every store of an adapter has a row in docs/many-processes.md, and runs the store contract', () => {
  const exported = globSync('src/adapters/*/index.ts', { cwd: ROOT }).flatMap(
    (file) => read(file).match(/^export \{[^}]*\}/gm) ?? [],
  );
  const stores = exported.flatMap((names) => names.match(/\b[a-z]\w*Store\b/g) ?? []).sort();
  expect(stores).toEqual(expect.arrayContaining(['durableObjectStore', 'fileStore', 'redisStore']));
  const rows = lines('docs/many-processes.md').filter((line) => line.startsWith('| '));
  expect(stores.filter((name) => !rows.some((row) => row.includes(`\`${name}`)))).toEqual([]);
  const contract = read('test/shared/stores.test.ts') + read('test/shared/real-stores.test.ts');
  expect(stores.filter((name) => !new RegExp(`=> ${name}\\(`).test(contract))).toEqual([]);
});

test('npm run area finds tests for every folder of src', () => {
  expect(areas()).toEqual(expect.arrayContaining(['uploading', 'catalog', 'bullmq']));
  expect(
    areas()
      .flatMap(testsOf)
      .filter((path) => !existsSync(ROOT + path)),
  ).toEqual([]);
});

test('a test reads every body in test/fixtures', () => {
  const isInstalled = (name: string) => name === 'node_modules';
  const tests = globSync('test/**/*.ts', { cwd: ROOT, exclude: isInstalled }).map(read).join();
  const bodies = readdirSync(`${ROOT}test/fixtures/bodies`);
  expect(bodies.filter((name) => !tests.includes(`fixtures/bodies/${name}`))).toEqual([]);
});

test('every hook has a row in docs/telemetry.md, and is in CHANGELOG.md', () => {
  const rows = lines('docs/telemetry.md').filter((line) => line.startsWith('| `on'));
  expect(HOOKS.filter((name) => !rows.some((row) => row.includes(`\`${name}\``)))).toEqual([]);
  expect(HOOKS.filter((name) => !read('CHANGELOG.md').includes(`\`${name}\``))).toEqual([]);
});
