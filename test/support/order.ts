import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, by the clock. They begin first, so that no worker is left with one of them at the end. */
const SLOW = [
  'worlds/worlds',
  'bullmq/many-creates',
  'bullmq/order',
  'bullmq/paid-once',
  'package-consumer',
  'page/chromium',
  'webhooks/receivers',
  'durable/cloudflare/cloudflare',
  'durable/restate/restate',
  'durable/dbos/dbos',
  'durable/workflow/workflow',
  'durable/inngest/inngest',
  'durable/ai-sdk/ai-sdk',
  'site/playground',
  'examples',
  'redis/many-processes',
  'bullmq/turns',
  'shared/stores',
  'budget/redis',
  'budget/store',
  'redis/share-limits',
  'cli/batch-money',
  'readme/stores-and-engines',
  'readme',
  'types',
  'bullmq/crashes',
];

/** Vitest's order, with the slow files at its head. Vitest knows how long a file takes only where it has run before. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = SLOW.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at === -1 ? SLOW.length : at;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}
