// npm run campaign -- shop --seeds 20 --orders 56: shops killed up to a dozen times each, alternately on a file and on two
// functions.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { drawOrders, playShop, randomKills } from './shop.js';
import { openCustomStore, openFileStore } from './shop-stores.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    orders: { type: 'string', default: '56' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'gen-shop-'));
let wrong = 0;
for (let seed = Number(values.first); seed < Number(values.first) + Number(values.seeds); seed++) {
  const storeName = seed % 2 === 0 ? 'two functions' : 'a file';
  const store = seed % 2 === 0 ? openCustomStore() : openFileStore(folder, `${seed}.store`);
  const chances = randomKills({ seed, maxPauses: 700, max: 12 });
  const startMs = performance.now();
  const { violations, kills, history } = await playShop(store, drawOrders(Number(values.orders), seed), {
    seed,
    chances,
  });
  const seconds = Math.round((performance.now() - startMs) / 1000);
  process.stdout.write(`seed ${seed}, ${storeName}: ${kills} kills, ${violations.length} violations, ${seconds} s\n`);
  if (violations.length === 0) continue;
  wrong += 1;
  process.stdout.write(`${violations.join('\n')}\n${process.env.SHOP_HISTORY ? history.join('\n') : ''}\n`);
}
rmSync(folder, { recursive: true });
process.exit(wrong === 0 ? 0 : 1);
