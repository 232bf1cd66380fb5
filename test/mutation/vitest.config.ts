import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import all from '../../vitest.config.js';
import { AREAS, LEFT_OUT } from './areas.js';

const area = process.env.MUTATE_AREA ?? '';
const { tests = [] } = AREAS[area] ?? {};

/** Milliseconds that each file took in its longest run: most mutants are tried with a few tests of a file only. */
const longest = new Map<string, number>();

/** One failure is enough for a mutant: first the file that failed for the one before it, then the quickest. */
class LikelyFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification) => {
      const { failed = false, duration = 0 } = this.ctx.cache.getTestSpecificationResult(file) ?? {};
      const ms = Math.max(duration, longest.get(file.moduleId) ?? 0);
      longest.set(file.moduleId, ms);
      // One that was not loaded took no time.
      return failed && duration > 0 ? ms - 1e9 : ms;
    };
    const ranks = new Map(files.map((file) => [file, rank(file)]));
    return files.toSorted((one, other) => (ranks.get(one) ?? 0) - (ranks.get(other) ?? 0));
  }
}

export default {
  ...all,
  root: fileURLToPath(new URL('../../', import.meta.url)),
  test: {
    ...all.test,
    projects: undefined,
    include: [...tests],
    exclude: LEFT_OUT,
    // A process for each file would take most of the time. What a mutant leaves behind matters to no one: its run is over.
    isolate: false,
    setupFiles: ['test/mutation/one-failure.ts'],
    sequence: { sequencer: LikelyFirst },
    // A mutant may make a test hang: its end should come soon. The tests of BullMQ take long by themselves.
    testTimeout: area === 'bullmq' ? 30_000 : 10_000,
  },
};
