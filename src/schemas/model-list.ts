import type { Fields } from './envelope.js';

/** A model as GET /v1/models tells of it. The spec does not show its fields: all of them pass through. */
export type ModelInfo = Fields;

/** The service's models, with whatever else it answers (spec: GET /v1/models). */
export interface ModelList {
  /** The records as the service gives them. Names, aliases, prompt limits and media limits. */
  models: ModelInfo[];
  [field: string]: unknown;
}

/** The service's integration data (spec: What the service does). The spec does not show its fields. */
export type IntegrationData = Fields;
