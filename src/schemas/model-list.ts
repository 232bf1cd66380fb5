import type { Fields } from './envelope.js';

/** A model, as GET /v1/models gives it. The spec does not show its fields: all of them pass through. */
export type ModelInfo = Fields;

/** The service's models (with whatever else it answers; spec: GET /v1/models). */
export interface ModelList {
  /** @remarks The records as the service gives them: names, aliases, prompt limits and media limits. */
  models: ModelInfo[];
  [field: string]: unknown;
}

/** The service's integration data (spec: What the service does). The spec does not show its fields. */
export type IntegrationData = Fields;
