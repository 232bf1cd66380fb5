// `npm run mutate -- <area> …` (see run.mjs): breaks a line at a time, and asks whether a test notices.
import { fileURLToPath } from 'node:url';

const area = process.env.MUTATE_AREA;

export default {
  testRunner: 'vitest',
  plugins: [fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner'))],
  mutate: [`src/${area}/**/*.ts`, `!src/${area}/index.ts`],
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  reporters: ['clear-text', 'progress'],
  clearTextReporter: { allowColor: false, logTests: false },
  tempDirName: 'node_modules/.cache/stryker',
  ignorePatterns: ['dist', 'docs', '**/node_modules', 'bench', 'coverage'],
  thresholds: { high: 95, low: 85, break: 85 },
};
