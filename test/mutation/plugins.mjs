// For Stryker: a checker that leaves out mutants outside the sample and those that an earlier run has tried, as if they did not
// compile, and a reporter that writes each result into the log of the area.
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { fileOf, isKilled, nameOf, readLog } from './log.mjs';

const { MUTATE_LOG, MUTATE_SEED, MUTATE_UNTRIED } = process.env;
const SHARE = Number(process.env.MUTATE_SHARE);

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
    const name = nameOf(fileOf(mutant.fileName), countedFromOne(mutant));
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
