// A checker for Stryker that leaves out all mutants but a random sample: those left out count as if they did not compile.
import { createHash } from 'node:crypto';
import { relative } from 'node:path';

const SHARE = Number(process.env.MUTATE_SHARE ?? 1);

export const strykerPlugins = [
  { kind: 'Checker', name: 'sample', factory: () => ({ init: async () => {}, check, group }) },
];

/** All at once: nothing is compiled. */
async function group(mutants) {
  return [mutants.map(({ id }) => id)];
}

async function check(mutants) {
  const resultOf = (mutant) =>
    isInSample(mutant) ? { status: 'passed' } : { status: 'compileError', reason: 'left out' };
  return Object.fromEntries(mutants.map((mutant) => [mutant.id, resultOf(mutant)]));
}

/** The same seed chooses the same mutants of the same source, in whatever order they come. */
function isInSample({ fileName, mutatorName, location, replacement }) {
  // Stryker works in a copy, whose path is another one each time.
  const file = relative(process.cwd(), fileName);
  const name = JSON.stringify([process.env.MUTATE_SEED, file, mutatorName, location, replacement]);
  return createHash('sha256').update(name).digest().readUInt32BE() / 2 ** 32 < SHARE;
}
