import { expect, test } from 'vitest';
import { explore } from './explore.js';
import { CORNERS } from './world.js';

/** Each push runs the same worlds. `npm run worlds` draws new ones. */
const SEED = 20_261_122;
/** With fewer worlds than this, on a machine that is very busy, a corner may not have been reached. */
const ENOUGH = 400;

test('in every world, jobs are calls, charges are quotes, budgets say what was charged, no 429, and nothing is left', async () => {
  const { worlds, reached } = await explore({ minutes: 1, seed: SEED });
  if (worlds < ENOUGH) return;
  for (const corner of CORNERS) expect([corner, (reached.get(corner) ?? 0) > 0]).toEqual([corner, true]);
}, 300_000);
