import type { Settings } from './options.js';
import { createRandom, type RandomSource, secretText } from './random.js';
import { createState, type DueEvent, type State, type StoredJob } from './state.js';
import { Activity, Timeline } from './timeline.js';

/** The file of a job, ready to serve. */
export interface ServedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Strong, quoted, and unique to the content, even if a reset repeats the job IDs. */
  readonly etag: string;
}

export interface World {
  readonly settings: Settings;
  readonly state: State;
  readonly random: RandomSource;
  readonly timeline: Timeline;
  readonly activity: Activity;
  /** Rendered files of jobs. */
  readonly files: WeakMap<StoredJob, ServedFile>;
  readonly inFlight: Set<Promise<void>>;
  readonly storageSecret: string;
}

/** Creates an empty world, or an independent copy of `origin`. `run` is called when an event is due. */
export function createWorld(settings: Settings, run: (world: World, event: DueEvent) => void, origin?: World): World {
  const state = origin ? structuredClone(origin.state) : createState(settings);
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
