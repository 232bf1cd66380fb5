// What runs learnt of the mutants of an area, one line each. A run writes it as it goes, so that one that was stopped can go on.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** A mutant's name: its place, what breaks, and what stands there instead. Lines and columns count from 1. */
export function nameOf(file, { mutatorName, replacement, location: { start, end } }) {
  return `${file}:${start.line}:${start.column}-${end.line}:${end.column} ${mutatorName} ${replacement}`;
}

/** Stryker works in a copy, whose path is another one each time. */
export const fileOf = (path) => relative(process.cwd(), path);

/** By a mutant's name: its last status, and whether it was noticed only because a test hung. */
export function readLog(path) {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  const results = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  return new Map(results.map((result) => [result.name, result]));
}

export const isKilled = (result) => result?.status === 'Killed' || result?.status === 'Timeout';
