import { fileURLToPath } from 'node:url';
import all from '../../vitest.config.js';

const folders = process.env.MUTATE_TESTS?.split(',') ?? [];

export default {
  ...all,
  root: fileURLToPath(new URL('../../', import.meta.url)),
  test: { ...all.test, include: folders.map((folder) => `test/${folder}/**/*.test.ts`) },
};
