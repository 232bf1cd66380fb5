import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest files in CI. They run first, so that no worker ends with one of them. CI prints the current list. */
const SLOW = [
  'shared/real-stores',
  ...['worlds/kills', 'store/crashes', 'cloudflare/one-account', 'store/check-store', 'types', 'page/chromium'],
  ...['durable/workflow/workflow', 'worlds/worlds', 'bullmq/crashes', 'package-consumer', 'package-entry-types'],
  ...['site/layout', 'durable/dbos/dbos', 'storage/r2', 'storage/campaign', 'webhooks/receivers', 'page/users'],
  ...['durable/cloudflare/cloudflare', 'documented-code', 'transport/campaign'],
  ...['regular-expressions', 'sandbox-server/page', 'durable/restate/restate', 'examples'],
];

/** Vitest's order with the slow files first. Vitest knows durations only on machines that have run the tests before. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = SLOW.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at === -1 ? SLOW.length : at;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}
