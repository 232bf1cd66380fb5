import { expect, test } from 'vitest';
import { explore } from './explore.js';
import { CORNERS } from './world.js';

/** Each push runs the same worlds, which reach every corner. `npm run worlds` draws new ones. */
const WORLDS = { seed: 20_261_122, most: 150 };

test('in every world, jobs match calls, charges match quotes, budgets match charges, no 429 occurs, and nothing is left', async () => {
  const { worlds, reached } = await explore({ minutes: 1, ...WORLDS });
  // A machine that is very busy does not come so far.
  if (worlds < WORLDS.most) return;
  for (const corner of CORNERS) expect([corner, (reached.get(corner) ?? 0) > 0]).toEqual([corner, true]);
}, 300_000);
