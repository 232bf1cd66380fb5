import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import all from '../../vitest.config.js';
import { AREAS, LEFT_OUT } from './areas.js';

const area = process.env.MUTATE_AREA ?? '';
const { tests = [] } = AREAS[area] ?? {};

/** The quickest files first: one failure is enough for a mutant, and Vitest knows from its first run how long each takes. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).reverse();
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
    sequence: { sequencer: QuickFirst },
    // A mutant may make a test hang: its end should come soon. The tests of BullMQ take long by themselves.
    testTimeout: area === 'bullmq' ? 30_000 : 10_000,
  },
};
