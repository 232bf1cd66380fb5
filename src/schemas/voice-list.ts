import type { Fields } from './envelope.js';

/** A voice as GET /v1/voices tells of it. The spec does not show its fields: all of them pass through. */
export type Voice = Fields;

/** The voices usable for speech, with whatever else the service answers. */
export interface VoiceList {
  /** The records as the service gives them. */
  voices: Voice[];
}
