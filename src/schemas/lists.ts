import type { Fields } from './envelope.js';

/** The service's models, with whatever else it answers. */
export interface ModelList {
  /** The records as the service gives them. Names, aliases, prompt limits and media limits. */
  models: Fields[];
}

/** The voices usable for speech, with whatever else the service answers. */
export interface VoiceList {
  /** The records as the service gives them. */
  voices: Fields[];
}
