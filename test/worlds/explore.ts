// Generates and runs worlds until one breaks an invariant or time runs out.
import fc from 'fast-check';
import { worldEvents } from './commands.js';
import { type Corner, World } from './world.js';

interface Exploration {
  readonly minutes: number;
  readonly seed: number;
  /** Maximum number of worlds. @default as many as the time allows */
  readonly max?: number;
}

interface ExplorationResult {
  readonly worlds: number;
  /** CPU minutes. */
  readonly cpuMinutes: number;
  readonly reached: ReadonlyMap<Corner, number>;
}

/** A world that takes longer is stuck, even on a slow machine. */
const MAX_WORLD_MS = 30_000;

/** Runs worlds for some time. Rejects with the shortest history that breaks an invariant. */
export async function explore({
  minutes,
  seed,
  max = Number.POSITIVE_INFINITY,
}: Exploration): Promise<ExplorationResult> {
  const reached = new Map<Corner, number>();
  let worlds = 0;
  let cpuMs = 0;
  let running: { readonly world: World; readonly sinceMs: number; readonly history: string } | undefined;
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), worldEvents, async (world, commands) => {
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
    numRuns: max,
    interruptAfterTimeLimit: minutes * 60_000,
    markInterruptAsFailure: false,
  });
  // fast-check's time limit interrupts a world without an error.
  if (running && performance.now() - running.sinceMs > MAX_WORLD_MS) {
    throw new Error(`a world never ends: ${running.history}\n${running.world.history.join('\n')}`);
  }
  return { worlds, cpuMinutes: cpuMs / 60_000, reached };
}
