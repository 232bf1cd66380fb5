import type { Settings } from './options.js';
import { createRandom, freshSeed, type RandomSource, secretText } from './random.js';
import { createState, type DueEvent, type State, type StoredJob } from './state.js';
import { Activity, Timeline } from './timeline.js';

/** The file of a job, as it is served. */
export interface ServedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Strong, with its quotes: other content has another one, also after a reset that repeats the ids. */
  readonly etag: string;
}

export interface World {
  readonly settings: Settings;
  readonly state: State;
  readonly random: RandomSource;
  readonly timeline: Timeline;
  readonly activity: Activity;
  /** The files that somebody has asked for. */
  readonly files: WeakMap<StoredJob, ServedFile>;
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
    files: new WeakMap(),
    inFlight: new Set(),
    storageSecret: origin?.storageSecret ?? secretText('storage'),
  };
  return world;
}
