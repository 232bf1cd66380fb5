import { expect, test } from 'vitest';
import { explore } from './explore.js';
import { CORNERS } from './world.js';

/** CI runs the same worlds each time, and they reach every corner case. `npm run worlds` generates new ones. */
const WORLDS = { seed: 5, max: 110 };

test('every world has matching jobs, charges, and budgets, no 429, and nothing left behind', async () => {
  const { worlds, reached } = await explore({ minutes: 1, ...WORLDS });
  // A very busy machine runs out of time first.
  if (worlds < WORLDS.max) return;
  for (const corner of CORNERS) expect([corner, (reached.get(corner) ?? 0) > 0]).toEqual([corner, true]);
}, 300_000);
