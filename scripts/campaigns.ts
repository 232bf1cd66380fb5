// The long runs of `npm run campaign`. CI runs a small version of the test files.

interface Campaign {
  readonly about: string;
  /** A program, or a test file that reads `CAMPAIGN=full`. */
  readonly file: string;
  readonly needsBuild?: boolean;
}

export const CAMPAIGNS: Readonly<Record<string, Campaign>> = {
  creates: {
    about: 'creates through thousands of seeded network faults (--creates 5000 --seed 1)',
    file: 'test/transport/campaign.ts',
    needsBuild: true,
  },
  limits: {
    about: 'many processes under one rate limit, over a full minute',
    file: 'test/redis/many-processes.test.ts',
  },
  shop: {
    about: 'simulated shops that crash a dozen times each (--seeds 20 --orders 56)',
    file: 'test/worlds/shop-run.ts',
  },
  kills: { about: 'simulated crashes at every pause of a create', file: 'test/worlds/kills.test.ts' },
  file: { about: 'processes that share a file store and are killed', file: 'test/store/shared-file.test.ts' },
  money: {
    about:
      'processes on one Redis that are killed, paused for 45 s, and disconnected for 20 s, with 600 calls in flight',
    file: 'test/redis/money.test.ts',
  },
  storage: {
    about: 'copies through service and store faults ([copies] [seed])',
    file: 'test/storage/campaign.ts',
  },
  cloudflare: { about: 'many isolates on one account', file: 'test/cloudflare/one-account.test.ts' },
  queue: { about: 'BullMQ workers that are killed', file: 'test/bullmq/crashes.test.ts' },
  batch: { about: 'batches that are killed (SEED=2 for other crashes)', file: 'test/cli/batch-crashes.test.ts' },
  budgets: {
    about: 'budgets in random worlds with outages, crashes, and clock changes (WORLDS=5000)',
    file: 'test/budget/invariant.test.ts',
  },
  aborts: { about: 'aborts at every point at which a call waits', file: 'test/budget/aborts.test.ts' },
  forgeries: { about: 'mutated webhooks', file: 'test/webhooks/forgeries.test.ts' },
  durable: {
    about: 'durable runs on an engine that crashes, repeats steps, and loses results',
    file: 'test/durable/generate.test.ts',
  },
};
