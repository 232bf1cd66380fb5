// Kills a worker at each await of a queued call.
import { expect, test } from 'vitest';
import { World } from './world.js';

test.each(['completed', 'failed', 'canceled'] as const)(
  'a queued call creates one %s job, whichever await its worker is killed at',
  async (end) => {
    for (let count = 1; count <= 45; count++) {
      const world = new World(count);
      for (const process of [0, 1, 2])
        world.faults.pauses.set(process, { count, fault: { kind: 'kill', isHandled: false } });
      world.startTask({ process: 0, kind: 'queue', end, slowMs: 0, hasWebhook: false });
      await world.advance(1_000);
      await world.end();
      expect(world.disk.tasks).toMatchObject([{ result: end }]);
    }
  },
  60_000,
);
