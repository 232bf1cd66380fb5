// The laws' own tests: each law finds what it is there for, at the right line, and lets the neighbouring case pass.
import { expect, test } from 'vitest';
import { exportsAreDocumented } from './documented.js';
import { arrowsPointDown, insidesStayInside, noCircles, resourcesSeeThePortOnly } from './floors.js';
import { environmentHasOneReader, nodeGlobalsStayOut, packagesHaveOneImporter, timeHasAClock } from './importers.js';
import { filesAreShort, functionsAreShort, nestingIsShallow, parametersAreFew } from './shape.js';
import type { Law } from './source.js';
import { parse, told } from './source.js';
import * as words from './words.js';

const lines = (count: number, line = '  void 0;') => `${Array.from({ length: count }, () => line).join('\n')}\n`;

interface Case {
  readonly law: Law;
  readonly files: Readonly<Record<string, string>>;
  /** What is told; none for a case that must pass. */
  readonly told: readonly string[];
}

const cases: Record<string, Case> = {
  'a circle through a type import is found where it closes': {
    law: noCircles,
    files: {
      'src/a.ts': "import { b } from './b.js';",
      'src/b.ts': "import { c } from './c.js';",
      'src/c.ts': "\nimport type { A } from './a.js';",
    },
    told: ['src/c.ts:2 closes a circle: a.ts -> b.ts -> c.ts -> a.ts'],
  },
  'a circle through import() and through a re-export is found': {
    law: noCircles,
    files: {
      'src/a.ts': "export const load = () => import('./b.js');",
      'src/b.ts': "export { load } from './a.js';",
    },
    told: ['src/b.ts:1 closes a circle: a.ts -> b.ts -> a.ts'],
  },
  'a diamond is no circle': {
    law: noCircles,
    files: {
      'src/a.ts': "import './b.js';\nimport './c.js';",
      'src/b.ts': "import './d.js';",
      'src/c.ts': "import './d.js';",
      'src/d.ts': '',
    },
    told: [],
  },
  'an arrow up and an arrow sideways are refused, an arrow down passes': {
    law: arrowsPointDown,
    files: {
      'src/errors/a.ts': "import type { Config } from '../config.js';\nimport type { Job } from '../schemas/job.js';",
      'src/uploading/a.ts': "import { wait } from '../polling/wait.js';",
    },
    told: [
      'src/errors/a.ts:1 errors must not import config: it stands above it',
      'src/uploading/a.ts:1 uploading must not import polling: it stands beside it',
    ],
  },
  'the sandbox sees the contract only, and is seen by the command line only': {
    law: arrowsPointDown,
    files: {
      'src/sandbox/a.ts':
        "import '../transport/path.js';\nimport '../schemas/job.js';\nimport '../webhooks/signature.js';",
      'src/client.ts': "import './sandbox/index.js';",
      'src/cli/index.ts': "import '../sandbox/index.js';",
    },
    told: [
      'src/sandbox/a.ts:1 the sandbox must not see src/transport/path.ts',
      'src/client.ts:1 only the command line sees the sandbox, not client',
    ],
  },
  'a folder that is on no floor is named': {
    law: arrowsPointDown,
    files: { 'src/attic/a.ts': "import '../catalog.js';" },
    told: ['src/attic/a.ts:1 attic stands on no floor; give it one in test/architecture/floors.ts'],
  },
  'the client is for doors, and resources are strangers to each other': {
    law: insidesStayInside,
    files: {
      'src/resources/a.ts': "import './b.js';",
      'src/polling/a.ts': "import type { GenClient } from '../client.js';",
      'src/node/a.ts': "import type { GenClient } from '../client.js';",
    },
    told: [
      'src/resources/a.ts:1 resources must not import each other',
      'src/polling/a.ts:1 polling must not import the client',
    ],
  },
  'a resource that reaches the network through another file is found': {
    law: resourcesSeeThePortOnly,
    files: {
      'src/resources/a.ts': "import type { Transport } from '../transport/transport.js';\nimport '../transport/x.js';",
      'src/transport/x.ts': "import './http-transport.js';",
      'src/transport/http-transport.ts': '',
    },
    told: ['src/resources/a.ts:2 reaches src/transport/http-transport.ts through src/transport/x.ts'],
  },
  'a package has one importer': {
    law: packagesHaveOneImporter,
    files: {
      'src/transport/bytes.ts': "import ky from 'ky';",
      'src/client.ts': "import ky from 'ky';\nimport type { Options } from 'p-retry';",
      'src/schemas/job.ts': "import * as z from 'zod/mini';\nimport { z as all } from 'zod';",
    },
    told: [
      'src/client.ts:1 ky is not for src/client.ts',
      'src/client.ts:2 p-retry is not for src/client.ts',
      'src/schemas/job.ts:2 zod is in no list of test/architecture/importers.ts',
    ],
  },
  "Node's modules and extensionless paths are refused": {
    law: packagesHaveOneImporter,
    files: {
      'src/uploading/a.ts': "import 'node:fs';\nimport './b';",
      'src/node/a.ts': "import { open } from 'node:fs/promises';",
    },
    told: ['src/uploading/a.ts:1 node:fs is not for src/uploading/a.ts', 'src/uploading/a.ts:2 ./b must end in .js'],
  },
  'the environment is read in one place': {
    law: environmentHasOneReader,
    files: {
      'src/client.ts': 'void globalThis.process?.env.X;\nvoid import.meta.env;\nvoid context.env;',
      'src/config.ts': 'void globalThis.process?.env.X;',
    },
    told: [
      'src/client.ts:1 globalThis.process.env is read in config.ts and cli/ only',
      'src/client.ts:2 import.meta.env is read in config.ts and cli/ only',
    ],
  },
  "Node's globals are refused, members of the same name are not": {
    law: nodeGlobalsStayOut,
    files: { 'src/a.ts': 'Buffer.from([]);\nvoid globalThis.process;\nconst x = { require: 1 };' },
    told: ["src/a.ts:1 Buffer is Node's own; go through globalThis or do without"],
  },
  'time without a clock is refused in each of its forms': {
    law: timeHasAClock,
    files: {
      'src/a.ts':
        'Date.now();\nnew Date();\nnew Date(0);\nsetTimeout(f, 1);\nconst later = setTimeout;\nclock.setTimeout(f);',
      'src/clock.ts': 'Date.now();',
    },
    told: [
      'src/a.ts:1 Date.now outside of a clock',
      'src/a.ts:2 new Date() outside of a clock',
      'src/a.ts:4 setTimeout outside of a clock',
      'src/a.ts:5 setTimeout outside of a clock',
    ],
  },
  'a file of 250 lines passes and one of 251 does not': {
    law: filesAreShort,
    files: {
      'src/a.ts': lines(250),
      'src/b.ts': lines(251),
      'test/a.test.ts': lines(400),
      'test/b.test.ts': lines(401),
    },
    told: ['src/b.ts:251 has 251 lines, 250 at most', 'test/b.test.ts:401 has 401 lines, 400 at most'],
  },
  'a function of 50 lines passes and one of 51 does not': {
    law: functionsAreShort,
    files: { 'src/a.ts': `function f() {\n${lines(48)}}\n\nconst g = () => {\n${lines(49)}};` },
    told: ['src/a.ts:52 g has 51 lines, 50 at most'],
  },
  'a fourth parameter is refused, also in a method, a type and a constructor': {
    law: parametersAreFew,
    files: {
      'src/a.ts':
        'function f(a, b, c) {}\nclass A {\n  constructor(a, b, c, d) {}\n  m(this: A, a, b, c, options) {}\n}\ntype F = (a: 1, b: 1, c: 1, d: 1) => void;',
    },
    told: ['src/a.ts:3 the constructor takes 4 parameters, 3 at most', 'src/a.ts:6 F takes 4 parameters, 3 at most'],
  },
  'the fourth level of nesting is refused; else if adds none, and a function starts anew': {
    law: nestingIsShallow,
    files: {
      'src/a.ts':
        'function f() {\n  for (;;) {\n    if (a) {\n      try {\n        if (b) {}\n      } catch {}\n    }\n  }\n}',
      'src/b.ts': 'if (a) {} else if (b) {} else if (c) {} else if (d) { f(() => { if (e) {} }) }',
    },
    told: ['src/a.ts:5 is nested 4 deep, 3 at most'],
  },
  'words that hide something are refused': {
    law: words.wordsAreHonest,
    files: {
      'src/a.ts': [
        'let a: any;',
        'b!.c();',
        'd as unknown as string;',
        'enum E {}',
        'export default 1;',
        "export * from './b.js';",
        'export default function f() {}',
        'class C { x!: string }',
        "export * as ns from './b.js';",
        'd as unknown;',
        'a !== b;',
      ].join('\n'),
    },
    told: [
      'src/a.ts:1 any',
      'src/a.ts:2 a `!` that the compiler cannot check',
      'src/a.ts:3 `as unknown as`',
      'src/a.ts:4 an enum',
      'src/a.ts:5 a default export',
      'src/a.ts:6 `export *`',
      'src/a.ts:7 a default export',
      'src/a.ts:8 a `!` that the compiler cannot check',
      'src/a.ts:9 `export *`',
    ],
  },
  'printing is refused': {
    law: words.nothingPrints,
    files: { 'src/a.ts': 'console.log(1);\nglobalThis.console.warn(1);\nlogger.console;' },
    told: [
      'src/a.ts:1 console.log: nothing prints by itself',
      'src/a.ts:2 globalThis.console.warn: nothing prints by itself',
    ],
  },
  'comments that switch a check off or put work off are refused': {
    law: words.commentsHideNothing,
    files: { 'src/a.ts': `// @ts-${'ignore'}\n// ${'TODO'}: later\n// biome-ignore lint: x` },
    told: [`src/a.ts:1 @ts-${'ignore'}`, `src/a.ts:2 ${'TODO'}`],
  },
  'state in a module is refused, a constant table is not': {
    law: words.modulesHoldNoState,
    files: {
      'src/a.ts':
        "let a = 1;\nconst b = new Map();\nconst c = new Set(['x']);\nconst d = {};\nconst e = ['x'];\nclass F { static g = 1; static readonly h = 1 }",
      'src/limits/account-state.ts': 'const registry = new Map();',
    },
    told: [
      'src/a.ts:1 a is module state: a variable that can be assigned again',
      'src/a.ts:2 b is module state: a container to be filled',
      'src/a.ts:4 d is module state: a container to be filled',
      'src/a.ts:6 g is static and can be assigned again',
    ],
  },
  'a base class that only holds a field is refused': {
    law: words.baseClassesDoSomething,
    files: {
      'src/a.ts': 'class Base {\n  protected client = 1;\n}\nclass A extends Base { m() {} }\nclass B extends A {}',
    },
    told: ['src/a.ts:1 Base is a base class that only holds fields'],
  },
  'drawers and camel case are refused as file names': {
    law: words.filesAreNamedForWhatTheyDo,
    files: { 'src/retry-helpers.ts': '', 'src/utils/a.ts': '', 'src/httpClient.ts': '', 'src/retry-policy.ts': '' },
    told: [
      'src/retry-helpers.ts:1 the name does not say what the file is for',
      'src/utils/a.ts:1 the name does not say what the file is for',
      'src/httpClient.ts:1 httpClient is not kebab-case',
    ],
  },
  'a port imported as a value is refused': {
    law: words.typesAreImportedAsTypes,
    files: {
      'src/resources/a.ts': "import { Transport } from '../transport/transport.js';",
      'src/resources/b.ts': "import type { Transport } from '../transport/transport.js';",
    },
    told: ['src/resources/a.ts:1 ../transport/transport.js is a port: types only'],
  },
  'an exported name without a doc comment is found': {
    law: exportsAreDocumented,
    files: {
      'src/a.ts':
        '/** Said. */\nexport const a = 1;\nexport const b = 1;\nexport function c() {}\nfunction d() {}\nexport type E = 1;',
    },
    told: ['src/a.ts:3 b has no doc comment', 'src/a.ts:4 c has no doc comment', 'src/a.ts:6 E has no doc comment'],
  },
};

test.each(Object.entries(cases))('%s', (_name, { law, files, told: expected }) => {
  expect(told(law(parse(files)))).toEqual(expected);
});
