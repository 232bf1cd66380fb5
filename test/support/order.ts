import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that took longest by the clock in CI. They begin first, so that no worker is left with one of them at the end. CI says
 * at its end which are slow.
 */
const SLOW = [
  ...['worlds/kills', 'store/crashes', 'cloudflare/one-account', 'store/check-store', 'types', 'page/chromium'],
  ...['durable/workflow/workflow', 'worlds/worlds', 'bullmq/crashes', 'package-consumer', 'package-entry-types'],
  ...['site/layout', 'durable/dbos/dbos', 'storage/r2', 'storage/campaign', 'webhooks/receivers', 'page/users'],
  ...['durable/cloudflare/cloudflare', 'documented-code', 'transport/campaign'],
  ...['regular-expressions', 'sandbox-doors/page', 'durable/restate/restate', 'shared/real-stores', 'examples'],
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
