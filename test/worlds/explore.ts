// Draws worlds and plays them, until one breaks a promise or the time is over.
import fc from 'fast-check';
import { happenings } from './commands.js';
import { type Corner, World } from './world.js';

/** How long to draw worlds. The same seed draws the same ones. */
interface Exploration {
  readonly minutes: number;
  readonly seed: number;
  /** How many worlds at most. @default as many as the time allows */
  readonly most?: number;
}

/** What was seen. */
interface Explored {
  readonly worlds: number;
  /** Minutes of one core. */
  readonly cpuMinutes: number;
  readonly reached: ReadonlyMap<Corner, number>;
}

/** No world takes so long, on any machine: one that does goes on for ever. */
const LONGEST_WORLD_MS = 30_000;

/** Plays worlds for some time. Rejects with the shortest history that breaks a promise. */
export async function explore({ minutes, seed, most = Number.POSITIVE_INFINITY }: Exploration): Promise<Explored> {
  const reached = new Map<Corner, number>();
  let worlds = 0;
  let cpuMs = 0;
  let running: { readonly world: World; readonly sinceMs: number; readonly history: string } | undefined;
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), happenings, async (world, commands) => {
    const real = new World(world);
    running = { world: real, sinceMs: performance.now(), history: String(commands) };
    const startedMs = process.cpuUsage().user / 1000;
    await fc.asyncModelRun(() => ({ model: {}, real }), commands);
    await real.end();
    cpuMs += process.cpuUsage().user / 1000 - startedMs;
    running = undefined;
    worlds += 1;
    for (const [corner, count] of real.reached) reached.set(corner, (reached.get(corner) ?? 0) + count);
  });
  await fc.assert(property, {
    seed,
    numRuns: most,
    interruptAfterTimeLimit: minutes * 60_000,
    markInterruptAsFailure: false,
  });
  // The end of the time interrupts a world without a word about it.
  if (running && performance.now() - running.sinceMs > LONGEST_WORLD_MS) {
    throw new Error(`a world never ends: ${running.history}\n${running.world.history.join('\n')}`);
  }
  return { worlds, cpuMinutes: cpuMs / 60_000, reached };
}
