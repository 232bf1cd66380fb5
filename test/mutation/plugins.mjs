// For Stryker: a checker that leaves out mutants outside the sample, those of unchanged lines, and those that an earlier run has
// tried, as if they did not compile, and a reporter that writes each result into the log of the area.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { fileOf, isKilled, nameOf, readLog } from './log.mjs';

const { MUTATE_LOG, MUTATE_SEED, MUTATE_SINCE, MUTATE_UNTRIED } = process.env;
const SHARE = Number(process.env.MUTATE_SHARE);
/** The lines that have changed, or undefined where all count. */
const CHANGED = MUTATE_SINCE ? linesChangedSince(MUTATE_SINCE) : undefined;

export const strykerPlugins = [
  { kind: 'Checker', name: 'choice', factory: () => ({ init: async () => {}, check, group }) },
  { kind: 'Reporter', name: 'log', factory: () => ({ onMutantTested: write }) },
];

/** All at once: nothing is compiled. */
async function group(mutants) {
  return [mutants.map(({ id }) => id)];
}

async function check(mutants) {
  const log = readLog(MUTATE_LOG);
  const resultOf = (mutant) => {
    const counted = countedFromOne(mutant);
    const file = fileOf(mutant.fileName);
    const name = nameOf(file, counted);
    if (CHANGED && !isInLines(counted, CHANGED.get(file))) return { status: 'compileError', reason: 'not changed' };
    const before = log.get(name);
    if (isKilled(before) || (before && MUTATE_UNTRIED)) return { status: 'compileError', reason: 'tried before' };
    return isInSample(name) ? { status: 'passed' } : { status: 'compileError', reason: 'left out' };
  };
  return Object.fromEntries(mutants.map((mutant) => [mutant.id, resultOf(mutant)]));
}

/** A checker is told places that count from 0, a reporter those that count from 1. */
function countedFromOne({ location: { start, end }, ...mutant }) {
  const next = ({ line, column }) => ({ line: line + 1, column: column + 1 });
  return { ...mutant, location: { start: next(start), end: next(end) } };
}

/** By a file's path: the numbers of its lines that a commit does not have. */
function linesChangedSince(commit) {
  const lines = new Map();
  let file = '';
  for (const line of execFileSync('git', ['diff', '-U0', commit, '--', 'src'], { encoding: 'utf8' }).split('\n')) {
    if (line.startsWith('+++ ')) {
      file = line.slice('+++ b/'.length);
      lines.set(file, new Set());
    }
    const [, first, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    for (let at = 0; first && at < Number(count); at += 1) lines.get(file).add(Number(first) + at);
  }
  return lines;
}

/** Whether a mutant begins or ends in one of the lines. One that spans them, such as a whole function, was there before. */
const isInLines = ({ location: { start, end } }, lines) => lines?.has(start.line) || lines?.has(end.line);

/** The same seed chooses the same mutants of the same source, in whatever order they come. */
function isInSample(name) {
  return createHash('sha256').update(`${MUTATE_SEED} ${name}`).digest().readUInt32BE() / 2 ** 32 < SHARE;
}

function write(mutant) {
  const { status, statusReason = '' } = mutant;
  if (status === 'CompileError') return;
  // By Stryker's limit, or by the one of a test.
  const isHung = status === 'Timeout' || /timed out in/i.test(statusReason);
  appendFileSync(MUTATE_LOG, `${JSON.stringify({ name: nameOf(fileOf(mutant.fileName), mutant), status, isHung })}\n`);
}
