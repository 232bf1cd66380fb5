import { fileURLToPath } from 'node:url';
import all from '../../vitest.config.js';
import { AREAS, LEFT_OUT } from './areas.js';

const { tests = [] } = AREAS[process.env.MUTATE_AREA ?? ''] ?? {};

export default {
  ...all,
  root: fileURLToPath(new URL('../../', import.meta.url)),
  test: { ...all.test, projects: undefined, include: [...tests], exclude: LEFT_OUT },
};
