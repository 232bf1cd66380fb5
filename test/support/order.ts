import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest files in CI. They run first, so that no worker is left with a slow file at the end. CI prints the list. */
const SLOW = [
  'shared/real-stores',
  ...['worlds/kills', 'store/crashes', 'cloudflare/one-account', 'store/check-store', 'types', 'page/chromium'],
  ...['durable/workflow/workflow', 'worlds/worlds', 'bullmq/crashes', 'package-consumer', 'package-entry-types'],
  ...['site/layout', 'durable/dbos/dbos', 'storage/r2', 'storage/campaign', 'webhooks/receivers', 'page/users'],
  ...['durable/cloudflare/cloudflare', 'documented-code', 'transport/campaign'],
  ...['store/file-store', 'budget/outages', 'shared/stores', 'cli/batch-money'],
  ...['regular-expressions', 'sandbox-server/page', 'durable/restate/restate', 'examples'],
];

/** Vitest's order with the slow files first. Vitest knows durations only on machines that have run the tests before. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const index = SLOW.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return index === -1 ? SLOW.length : index;
    };
    return (await super.sort(files)).sort((first, second) => rankOf(first) - rankOf(second));
  }
}
