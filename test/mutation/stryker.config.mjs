// See run.mjs, which sets the area.
import { fileURLToPath } from 'node:url';
import { AREAS } from './areas.ts';

const { MUTATE_AREA, MUTATE_AT_ONCE, MUTATE_REPORT } = process.env;

export default {
  testRunner: 'vitest',
  plugins: [
    fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner')),
    fileURLToPath(new URL('./plugins.mjs', import.meta.url)),
  ],
  checkers: ['choice'],
  mutate: AREAS[MUTATE_AREA].files,
  // Tests read the source of examples, and vitest checks no types.
  disableTypeChecks: false,
  // The commands of a test move into its folder, which only a process can.
  vitest: {
    configFile: 'test/mutation/vitest.config.ts',
    related: false,
    pool: MUTATE_AREA.startsWith('cli/') ? 'forks' : 'threads',
  },
  coverageAnalysis: 'perTest',
  concurrency: Number(MUTATE_AT_ONCE),
  // A test that hangs is ended by Vitest, which costs less than a new process. This is for loops that never end.
  timeoutMS: 30_000,
  timeoutFactor: 1.25,
  dryRunTimeoutMinutes: 15,
  reporters: ['log', 'clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false },
  jsonReporter: { fileName: MUTATE_REPORT },
  tempDirName: 'coverage/mutation',
  ignorePatterns: ['dist', 'docs/.vitepress', '**/node_modules', 'bench', 'coverage'],
};
