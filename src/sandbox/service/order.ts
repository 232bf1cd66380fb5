// What creates have in common: a checked request becomes an order, and an order becomes a job.
import { MODELS } from '../../catalog.js';
import { isPrivateHost } from '../http/origins.js';
import { MAX_PROMPT_CHARS } from '../world/choices.js';
import type { PlannedEnd } from '../world/outcomes.js';
import type { JobMedia, StoredJob } from '../world/store.js';
import { type Fields, show } from './fields.js';
import type { Reference } from './references.js';
import { Refusal } from './refusal.js';

/** A create that passed the checks and has not been paid for. */
export interface Order {
  readonly kind: StoredJob['kind'];
  readonly modelId: string;
  readonly prompt: string;
  readonly media: Omit<JobMedia, 'seed'>;
  /** The caller's `seed`. */
  readonly seed: number | undefined;
  readonly cost: number;
  readonly references: readonly Reference[];
  /** A clip is never left out (spec: reference rules 5, and edits). */
  readonly isStrict: boolean;
  readonly webhookUrl: string | null;
  /** An end that the request's own wording brings about. */
  readonly end?: PlannedEnd | undefined;
  /** The state before `processing`. */
  readonly startsAs: 'created' | 'queued' | 'processing';
}

/** A model's row in the catalog, read loosely. */
export interface ModelRow {
  readonly kind: 'image' | 'video';
  readonly durations?: readonly number[];
  readonly aspectRatios?: readonly string[];
  readonly resolutions: readonly string[];
  readonly edits?: boolean;
}

/** The row of an alias; undefined for one that is none. */
export function modelRow(alias: unknown): ModelRow | undefined {
  if (typeof alias !== 'string' || !Object.hasOwn(MODELS, alias)) return undefined;
  return Object.entries<ModelRow>(MODELS).find(([name]) => name === alias)?.[1];
}

/** The model a create names, or the default; throws `model_not_found` for an alias of no model or of another kind. */
export function readModel(fields: Fields, kind: ModelRow['kind'], fallback: string): { alias: string; row: ModelRow } {
  const alias = fields.raw('model') ?? fallback;
  const row = modelRow(alias);
  if (row === undefined || row.kind !== kind || typeof alias !== 'string') {
    throw new Refusal('model_not_found', `model: ${show(alias)} is no ${kind} model; see GET /v1/models.`);
  }
  return { alias, row };
}

/** The prompt; throws `prompt_required` or `prompt_too_long`. */
export function readPrompt(fields: Fields, kind: ModelRow['kind'], instead?: string): string {
  const given = fields.raw('prompt') ?? '';
  const prompt = given === '' ? instead : given;
  if (typeof prompt !== 'string' || prompt.trim() === '') {
    throw new Refusal('prompt_required', 'prompt: a non-empty text is required.');
  }
  const most = MAX_PROMPT_CHARS[kind];
  if (prompt.length > most)
    throw new Refusal('prompt_too_long', `prompt: ${prompt.length} characters, ${most} at most.`);
  return prompt;
}

/** What a field asks for among what a model offers. */
export interface Choice<T extends string | number> {
  readonly fields: Fields;
  /** The field and its aliases. */
  readonly names: readonly string[];
  readonly offered: readonly T[];
  readonly fallback: T;
  readonly code: 'duration_not_supported' | 'aspect_ratio_not_supported' | 'resolution_not_supported';
}

/** The value chosen, or the fallback; throws the choice's code for one that is not offered. */
export function readChoice<T extends string | number>({ fields, names, offered, fallback, code }: Choice<T>): T {
  const field = names.find((name) => fields.raw(name) !== undefined);
  if (field === undefined) return fallback;
  const value = fields.raw(field);
  const chosen = offered.find((one) => one === value);
  if (chosen === undefined) throw new Refusal(code, `${field}: ${show(value)} is none of ${offered.join(', ')}.`);
  return chosen;
}

/** The webhook's URL: https, or http on a private host so that a receiver beside the sandbox can be reached. */
export function readWebhookUrl(fields: Fields): string | null {
  const text = fields.text('webhook_url', 'callback_url');
  if (text === undefined || text === '') return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivateHost(url.hostname))) return text;
  throw new Refusal(
    'invalid_request',
    `webhook_url: ${show(text)} must be an HTTPS URL (http on a private host only).`,
  );
}

/** Checks the fields that change nothing here: their types, and no more. */
export function checkPlainFields(fields: Fields): void {
  for (const name of ['watermark', 'generate_audio', 'camera_fixed']) fields.flag(name);
  for (const name of ['safety_identifier', 'response_format', 'intent', 'idempotency_key']) fields.text(name);
}

/** The caller's seed; throws for one that is no integer. */
export function readSeed(fields: Fields): number | undefined {
  const seed = fields.raw('seed');
  if (seed === undefined) return undefined;
  if (typeof seed === 'number' && Number.isSafeInteger(seed)) return seed;
  throw new Refusal('invalid_request', `seed: ${show(seed)} is no integer.`);
}
