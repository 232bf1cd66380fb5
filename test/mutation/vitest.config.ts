import { fileURLToPath } from 'node:url';
import all from '../../vitest.config.js';
import { AREAS, LEFT_OUT } from './areas.js';

const { tests = [] } = AREAS[process.env.MUTATE_AREA ?? ''] ?? {};

export default {
  ...all,
  root: fileURLToPath(new URL('../../', import.meta.url)),
  // Stryker ends a mutant that hangs. Before the first one, no test may fail because the machine is busy.
  test: { ...all.test, projects: undefined, include: [...tests], exclude: LEFT_OUT, testTimeout: 120_000 },
};
