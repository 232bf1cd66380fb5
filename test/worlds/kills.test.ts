// Kills a process at each await of an order with a file, two budgets, a resubmission, and a failed job.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { drawOrders, type Order, playShop, randomKills } from './shop.js';
import { openCustomStore, openFileStore, openRedisStore } from './shop-stores.js';
import type { FaultSchedule } from './simulation/chance.js';

const folder = mkdtempSync(join(tmpdir(), 'gen-kills-'));
let redis: RealRedis | undefined;
beforeAll(async () => {
  if (whyNoRedis() === undefined) redis = await startRedis();
});
afterAll(async () => {
  await redis?.close();
  rmSync(folder, { recursive: true });
});

const ORDER: Order = {
  id: 'a',
  call: 'videos',
  hasOwnKey: false,
  file: 'fresh',
  isTenants: true,
  isCleaned: true,
  hasWebhook: false,
  abortMs: undefined,
  fails: 1,
};

/** `npm run campaign -- kills` kills at every pause, with and without the shop's own keys. CI kills at one in 41. */
const IS_FULL = process.env.CAMPAIGN === 'full';
const STEP = IS_FULL ? 1 : 41;

/** Kills the process once, at its nth pause. */
function killAt(pause: number): FaultSchedule & { readonly hasKilled: boolean } {
  let remaining = pause;
  return {
    get hasKilled() {
      return remaining <= 0;
    },
    at({ of }) {
      if (of === 'pause') remaining -= 1;
      return of === 'pause' && remaining === 0 ? [{ kind: 'kill', isHandled: false }] : [];
    },
  };
}

/** Runs the order once per pause, each time with a kill at that pause. Returns the number of pauses. */
async function killEverywhere(
  order: Order,
  open: (pause: number) => ReturnType<typeof openFileStore>,
): Promise<number> {
  for (let pause = 1; ; pause += STEP) {
    const chances = killAt(pause);
    const { violations, history } = await playShop(open(pause), [order], { seed: pause, chances, isCalm: true });
    if (violations.length > 0) throw new Error(`killed at pause ${pause}: ${[...violations, ...history].join('\n')}`);
    if (!chances.hasKilled) return pause;
  }
}

const STORES: readonly (readonly [storeName: string, hasOwnKey: boolean])[] = [
  ['a file store', false],
  ['Redis', true],
  ...(IS_FULL
    ? ([
        ['a file store', true],
        ['Redis', false],
      ] as const)
    : []),
];
it.each(STORES)(
  'an order pays for one job and stores its file, whichever await its process is killed at (%s, own key: %s)',
  async (storeName, hasOwnKey) => {
    if (storeName === 'Redis' && redis === undefined) return;
    const open = (at: number) =>
      storeName === 'Redis' && redis
        ? openRedisStore(redis, `${hasOwnKey} ${at}:`)
        : openFileStore(folder, `${hasOwnKey} ${at}.store`);
    expect(await killEverywhere({ ...ORDER, hasOwnKey }, open)).toBeGreaterThan(100);
  },
  300_000,
);

it('a shop that is killed up to a dozen times pays for one job per order, and its budgets match the charges', async () => {
  for (const seed of [1, 2]) {
    const store = seed === 1 ? openFileStore(folder, 'shop.store') : openCustomStore();
    const chances = randomKills({ seed, maxPauses: 300, max: 12 });
    const { violations } = await playShop(store, drawOrders(14, seed), { seed, chances });
    expect(violations).toEqual([]);
  }
}, 300_000);
