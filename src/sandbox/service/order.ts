// What the creates have in common: a request that passes the checks becomes an order, and an order becomes a job.
import { MODELS } from '../../catalog.js';
import { show } from '../../schemas/show.js';
import { MAX_PROMPT_CHARS } from '../world/choices.js';
import type { PlannedEnd } from '../world/outcomes.js';
import type { PricedJob } from '../world/prices.js';
import type { JobMedia, StoredJob } from '../world/store.js';
import type { RequestFields } from './fields.js';
import { isPrivateHost, type Reference } from './references.js';
import { Refusal } from './refusal.js';

/** A create that passed the checks and has not been paid for. */
export interface Order {
  readonly kind: StoredJob['kind'];
  readonly call: PricedJob['call'];
  readonly modelId: string;
  readonly prompt: string;
  readonly media: Omit<JobMedia, 'seed'>;
  /** Whether sound was asked for. */
  readonly audio: boolean;
  /** The caller's `seed`. */
  readonly seed: number | undefined;
  readonly references: readonly Reference[];
  /** Whether a clip is never left out. */
  readonly isStrict: boolean;
  readonly webhookUrl: string | null;
  /** An end that the wording of the request causes. */
  readonly end?: PlannedEnd | undefined;
  /** The status before `processing`. */
  readonly startsAs: 'created' | 'queued' | 'processing';
}

/** A row of the catalog, with the fields of either kind. */
export interface ModelRow {
  readonly kind: 'image' | 'video';
  readonly durations?: readonly number[];
  readonly aspectRatios?: readonly string[];
  readonly resolutions: readonly string[];
  readonly edits?: boolean;
}

/** The row of an alias; undefined for an unknown one. */
export function modelRow(alias: unknown): ModelRow | undefined {
  if (typeof alias !== 'string' || !Object.hasOwn(MODELS, alias)) return undefined;
  return Object.entries<ModelRow>(MODELS).find(([name]) => name === alias)?.[1];
}

/** The model that a create names, or the default. Throws `model_not_found` for an unknown alias or one of another kind. */
export function readModel(
  fields: RequestFields,
  kind: ModelRow['kind'],
  fallback: string,
): { alias: string; row: ModelRow } {
  const alias = fields.raw('model') ?? fallback;
  const row = modelRow(alias);
  if (row === undefined || row.kind !== kind || typeof alias !== 'string') {
    throw new Refusal(
      'model_not_found',
      `model ${show(alias)} is not a known ${kind} model. GET /v1/models lists them.`,
    );
  }
  return { alias, row };
}

/** The prompt. Throws `prompt_required` or `prompt_too_long`. */
export function readPrompt(fields: RequestFields, kind: ModelRow['kind'], instead?: string): string {
  const given = fields.raw('prompt') ?? '';
  const prompt = given === '' ? instead : given;
  if (typeof prompt !== 'string' || prompt.trim() === '') {
    throw new Refusal('prompt_required', 'prompt must be a non-empty string.');
  }
  const most = MAX_PROMPT_CHARS[kind];
  if (prompt.length <= most) return prompt;
  throw new Refusal('prompt_too_long', `prompt has ${prompt.length} characters, and at most ${most} are allowed.`);
}

/** A field that chooses among what a model offers. */
export interface Choice<T extends string | number> {
  readonly fields: RequestFields;
  /** The field and its aliases. */
  readonly names: readonly string[];
  readonly offered: readonly T[];
  readonly fallback: T;
  readonly code: 'duration_not_supported' | 'aspect_ratio_not_supported' | 'resolution_not_supported';
}

/** The value chosen, or the fallback. Throws the code of the choice for a value that is not offered. */
export function readChoice<T extends string | number>({ fields, names, offered, fallback, code }: Choice<T>): T {
  const field = names.find((name) => fields.raw(name) !== undefined);
  if (field === undefined) return fallback;
  const value = fields.raw(field);
  const chosen = offered.find((one) => one === value);
  if (chosen !== undefined) return chosen;
  throw new Refusal(code, `${field} must be one of ${offered.join(', ')}, not ${show(value)}.`);
}

/** The URL of the webhook: https, or http on a private host so that a receiver beside the sandbox can be reached. */
export function readWebhookUrl(fields: RequestFields): string | null {
  const text = fields.text('webhook_url', 'callback_url');
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivateHost(url.hostname))) return text;
  const message = `webhook_url must be an HTTPS URL, or an http URL on a private host, not ${show(text)}.`;
  throw new Refusal('invalid_request', message);
}

/** Checks the fields that change nothing here: flags are true or false, texts are not empty. */
export function checkPlainFields(fields: RequestFields, flags: readonly string[], texts: readonly string[]): void {
  for (const name of flags) fields.flag(name);
  for (const name of [...texts, 'idempotency_key']) {
    if (fields.text(name) === '') throw new Refusal('invalid_request', `${name} must not be an empty string.`);
  }
}

/** Refuses a field that has another value than the documented ones. */
export function requireValue(fields: RequestFields, name: string, allowed: readonly string[]): void {
  const value = fields.text(name);
  if (value === undefined || allowed.includes(value)) return;
  throw new Refusal('invalid_request', `${name} must be ${allowed.join(', ')} or left out, not ${show(value)}.`);
}

/** The caller's seed. Throws `invalid_request` for what is not an integer. */
export function readSeed(fields: RequestFields): number | undefined {
  const seed = fields.raw('seed');
  if (seed === undefined) return undefined;
  if (typeof seed === 'number' && Number.isSafeInteger(seed)) return seed;
  throw new Refusal('invalid_request', `seed must be an integer, not ${show(seed)}.`);
}
