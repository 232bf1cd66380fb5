import type { Fields } from './envelope.js';

/** A voice, as GET /v1/voices gives it. The spec does not show its fields: all of them pass through. */
export type Voice = Fields;

/** The service's voices (with whatever else it answers; spec: Other operations). */
export interface VoiceList {
  voices: Voice[];
  [field: string]: unknown;
}
