// A queued call whose worker is killed at each of its awaits, one after the other.
import { expect, test } from 'vitest';
import { World } from './world.js';

test.each(['completed', 'failed', 'canceled'] as const)(
  'a queued call whose job is %s is created once, wherever its worker is killed',
  async (end) => {
    for (let count = 1; count <= 45; count++) {
      const world = new World(count);
      for (const process of [0, 1, 2])
        world.faults.pauses.set(process, { count, fault: { kind: 'kill', isHandled: false } });
      world.begin({ process: 0, kind: 'queue', end, slowMs: 0, hasWebhook: false });
      await world.advance(1_000);
      await world.end();
      expect(world.disk.tasks).toMatchObject([{ result: end }]);
    }
  },
  60_000,
);
