import type { Fields } from './envelope.js';

/** A model as GET /v1/models tells of it. The spec does not show its fields: all of them pass through. */
export type ModelInfo = Fields;

/** The service's models, with whatever else it answers. */
export interface ModelList {
  /** The records as the service gives them. Names, aliases, prompt limits and media limits. */
  models: ModelInfo[];
}

/** The service's integration data. The spec does not show its fields. */
export type IntegrationData = Fields;

/** A voice as GET /v1/voices tells of it. The spec does not show its fields: all of them pass through. */
export type Voice = Fields;

/** The voices usable for speech, with whatever else the service answers. */
export interface VoiceList {
  /** The records as the service gives them. */
  voices: Voice[];
}
