import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ROOT } from '../support/build.js';

it('the gallery is an app of at most 80 lines', () => {
  const files = globSync('examples/gallery/**/*.{ts,tsx}', { cwd: ROOT }).filter(
    (path) => !path.includes('node_modules'),
  );
  const lines = files
    .flatMap((path) => readFileSync(ROOT + path, 'utf8').split('\n'))
    .filter((line) => line.trim() !== '');
  expect(files.length).toBe(5);
  expect(lines.length).toBeLessThanOrEqual(80);
});
