import fc from 'fast-check';
import { expect, test } from 'vitest';
import { happenings } from './commands.js';
import { CORNERS, type Corner, World } from './world.js';

/** Real minutes that the worlds may take. `npm run worlds -- --minutes N` sets it. */
const MINUTES = Number(process.env.WORLDS_MINUTES ?? 1);
/** Each push runs the same worlds. `npm run worlds` draws new ones. */
const SEED = Number(process.env.WORLDS_SEED ?? 20_261_122);
/** With fewer worlds than this, on a machine that is very busy, a corner may not have been reached. */
const ENOUGH = 400;
/** No world takes so long, on any machine: one that does goes on for ever. */
const LONGEST_WORLD_MS = 30_000;

test(
  'in every world, jobs are calls, charges are quotes, the budget holds, no 429, every wait ends, and nothing is left',
  async () => {
    const reached = new Map<Corner, number>();
    let worlds = 0;
    let ms = 0;
    let running: { readonly world: World; readonly sinceMs: number; readonly history: string } | undefined;
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), happenings, async (seed, commands) => {
      const world = new World(seed);
      running = { world, sinceMs: performance.now(), history: String(commands) };
      const startedMs = process.cpuUsage().user / 1000;
      await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
      await world.end();
      ms += process.cpuUsage().user / 1000 - startedMs;
      running = undefined;
      worlds += 1;
      for (const [corner, count] of world.reached) reached.set(corner, (reached.get(corner) ?? 0) + count);
    });
    await fc.assert(property, {
      seed: SEED,
      numRuns: Number.POSITIVE_INFINITY,
      interruptAfterTimeLimit: MINUTES * 60_000,
      markInterruptAsFailure: false,
    });
    // The end of the time interrupts a world without a word about it.
    if (running && performance.now() - running.sinceMs > LONGEST_WORLD_MS) {
      throw new Error(`a world never ends: ${running.history}\n${running.world.history.join('\n')}`);
    }
    const perMinute = Math.round(worlds / (ms / 60_000));
    const corners = CORNERS.map((corner) => `${corner}: ${reached.get(corner) ?? 0}`);
    console.info(`${worlds} worlds with seed ${SEED}, ${perMinute} per minute of one core\n${corners.join('\n')}`);
    if (worlds < ENOUGH) return;
    for (const corner of CORNERS) expect([corner, (reached.get(corner) ?? 0) > 0]).toEqual([corner, true]);
  },
  (MINUTES + 4) * 60_000,
);
