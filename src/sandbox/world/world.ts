import { createMediaCache, type RenderFile } from '../media/index.js';
import type { Settings } from './options.js';
import { createRandom, freshSeed, type RandomSource, secretText } from './random.js';
import { Activity } from './real-time.js';
import { createState, type DueEvent, type State } from './state.js';
import { Timeline } from './timeline.js';

export interface World {
  readonly settings: Settings;
  readonly state: State;
  readonly random: RandomSource;
  readonly timeline: Timeline;
  readonly activity: Activity;
  readonly renderFile: RenderFile;
  readonly inFlight: Set<Promise<void>>;
  readonly storageSecret: string;
}

/** Makes a world: an empty one, or an independent copy of another at this moment. `run` does what is due for a job. */
export function createWorld(settings: Settings, run: (world: World, event: DueEvent) => void, origin?: World): World {
  const state = origin ? structuredClone(origin.state) : createState(settings.seed ?? freshSeed(), settings.dispatch);
  const activity = new Activity();
  const timeline = new Timeline({
    settings,
    startTime: origin?.timeline.now() ?? settings.startTime,
    state,
    activity,
    run: (event) => run(world, event),
  });
  const world: World = {
    settings,
    state,
    timeline,
    activity,
    random: createRandom(state),
    // Files follow from what a job shows, so a copy of the sandbox can share them.
    renderFile: origin?.renderFile ?? createMediaCache(),
    inFlight: new Set(),
    storageSecret: origin?.storageSecret ?? secretText('storage'),
  };
  return world;
}
