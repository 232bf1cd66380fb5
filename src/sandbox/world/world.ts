import type { MediaShelf } from '../service/media-shelf.js';
import type { Timeline } from './clock.js';
import type { Settings } from './options.js';
import type { RandomSource } from './random.js';
import type { State } from './store.js';

/** What every part of one sandbox works on. */
export interface World {
  readonly settings: Settings;
  readonly state: State;
  readonly random: RandomSource;
  readonly timeline: Timeline;
  readonly media: MediaShelf;
  /** Deliveries under way. */
  readonly inFlight: Set<Promise<void>>;
  /** Signs storage links. */
  readonly storageSecret: string;
  /** Sandbox milliseconds as the whole seconds that a client has to wait in its own time; at least 1. */
  wireSeconds(ms: number): number;
}
