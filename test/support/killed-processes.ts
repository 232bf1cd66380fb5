import type { ChildProcess } from 'node:child_process';
import { expect } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.js';

/** When a process closes, adds its complete lines of output and its errors to `lines`, and resolves. */
export function collectLines(process: ChildProcess, lines: string[]): Promise<void> {
  let [output, errors] = ['', ''];
  process.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  process.stderr?.on('data', (chunk) => {
    errors += chunk;
  });
  return new Promise((resolve) => {
    process.once('close', () => {
      lines.push(...output.split('\n').slice(0, -1), ...(errors ? [`error ${errors}`] : []));
      resolve();
    });
  });
}

/** Expects that killed processes printed every paid job, no error, and finally a budget that equals the charges. */
export function expectNothingLost({ jobs }: Pick<Sandbox, 'jobs'>, lines: readonly string[]): void {
  const printedIds = new Set(lines.filter((line) => line.startsWith('job ')).map((line) => line.slice('job '.length)));
  const charged = jobs.reduce((sum, { finalTokenCost }) => sum + (finalTokenCost ?? 0), 0);
  console.info(`${jobs.length} paid jobs, ${printedIds.size} found, ${charged} tokens, ${lines.at(-1)}`);
  expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);
  expect(jobs.filter(({ id }) => !printedIds.has(id))).toEqual([]);
  expect(lines.at(-1)).toBe(`usage ${charged} 0`);
}
