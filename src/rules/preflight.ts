import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, modelCapabilities } from '../catalog.js';
import { PreflightError, type RequestErrorCode } from '../errors/index.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import { formatValue } from '../schemas/format-value.js';
import type { Job } from '../schemas/job.js';
import { didYouMean } from '../schemas/spelling.js';
import {
  checkFieldNames,
  checkReferences,
  EDIT_SOURCE_FIELDS,
  type FieldsCall,
  FRAME_FIELDS,
  INVALID_PARAMS,
  REFERENCE_IMAGE_FIELDS,
  urlsIn,
} from './fields.js';
import { fallbackModels, type Recover } from './run-state.js';

/** Returns true if the call can have created the job. Otherwise, another call used its key. */
export function canHaveCreated(call: FieldsCall, { mediaType, modelId }: Pick<Job, 'mediaType' | 'modelId'>): boolean {
  const kind = call === 'images' || call === 'characters' ? 'image' : 'video';
  const model = modelId === undefined ? undefined : modelCapabilities(modelId);
  const isKind = (mediaType !== 'image' && mediaType !== 'video') || mediaType === kind;
  return isKind && (model === undefined || model.kind === kind);
}

/** Validates the params for each model that `recover` may switch to. Throws a PreflightError whose `param` is `recover`. */
export function checkFallbacks(recover: Recover | undefined, check: (model: string) => void): void {
  for (const model of fallbackModels(recover)) {
    try {
      check(model);
    } catch (cause) {
      if (!PreflightError.isInstance(cause)) throw cause;
      const message = `recover: the params do not fit the model "${model}". ${cause.message}`;
      throw new PreflightError(message, { code: cause.code, param: 'recover', cause });
    }
  }
}

/** Params limited by the model, the property that lists their values, and the service's error code. */
const MODEL_LIMITS: readonly (readonly [param: string, list: keyof ModelCapabilities, code: RequestErrorCode])[] = [
  ['duration', 'durations', 'duration_not_supported'],
  ['resolution', 'resolutions', 'resolution_not_supported'],
  ['ratio', 'aspectRatios', 'aspect_ratio_not_supported'],
  ['aspect_ratio', 'aspectRatios', 'aspect_ratio_not_supported'],
];

export interface CheckOptions {
  /** The model to assume if the params don't specify one. */
  readonly fallback?: string;
  /** The option `extraBody`. */
  readonly extra?: Fields | undefined;
}

/**
 * Returns the params. Throws for an undocumented field, a model that isn't a string, a number that JSON can't
 * represent, and an invalid reference.
 */
function paramsOf(call: FieldsCall, body: unknown, { extra }: CheckOptions = {}): Fields {
  requireParams(body);
  const params = isFields(body) ? body : {};
  checkFieldNames(call, params, extra);
  const { model } = params;
  if (model !== undefined && typeof model !== 'string') {
    throwInvalidParam('model_not_found', 'model', `must be a string, not ${formatValue(model)}.`);
  }
  for (const [param, value] of Object.entries(params)) {
    // JSON would send null.
    if (typeof value === 'number' && !Number.isFinite(value))
      throwInvalidParam(INVALID_PARAMS, param, `must be a number, not ${value}.`);
  }
  checkReferences(params);
  return params;
}

/** Throws if the params aren't an object, or are one whose content JSON would drop. */
export function requireParams(body: unknown): void {
  const prototype: unknown = isFields(body) ? Object.getPrototypeOf(body) : undefined;
  // An instance of an app's class has fields. FormData, Map, and similar objects have none.
  if (isFields(body) && (prototype === null || Object.keys(body).length > 0 || prototype === Object.prototype)) return;
  const example = formatValue(typeof body === 'string' ? body : 'a fox at dawn');
  throwInvalidParam(
    INVALID_PARAMS,
    'params',
    `must be an object such as { prompt: ${example} }, not ${isFields(body) ? `a ${body.constructor?.name}` : formatValue(body)}.`,
  );
}

/** Returns true unless the value is missing, an empty string, or an empty list. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

function throwInvalidParam(code: RequestErrorCode, param: string, problem: string): never {
  throw new PreflightError(`${param}: ${problem}`, { code, param });
}

function firstGiven(params: Fields, names: readonly string[]): string | undefined {
  for (const name of names) if (isGiven(params[name])) return name;
  return undefined;
}

/** Throws for a missing or blank prompt, unless `content` has a text item. */
function requirePrompt(params: Fields, content: readonly Fields[] = []): void {
  if (!content.some((item) => isNonBlank(item.text))) requireText(params, 'prompt', 'prompt_required');
}

/** Throws for a missing or blank string. */
function requireText(params: Fields, param: string, code: RequestErrorCode = INVALID_PARAMS): void {
  const value = params[param];
  if (isNonBlank(value)) return;
  throwInvalidParam(
    code,
    param,
    value === undefined ? 'is required.' : `must be a non-empty string, not ${formatValue(value)}.`,
  );
}

/** Throws for a known model of another kind, and for values that a known model doesn't support. */
function requireSupported(params: Fields, kind: ModelCapabilities['kind'], { fallback }: CheckOptions = {}): void {
  const model = params.model ?? fallback;
  const row = typeof model === 'string' ? modelCapabilities(model) : undefined;
  if (row === undefined) return;
  if (row.kind !== kind) {
    throwInvalidParam(
      'model_not_found',
      'model',
      `"${model}" does not support ${kind}s. Use ${aliases((other) => other.kind === kind)}.`,
    );
  }
  for (const [param, list, code] of MODEL_LIMITS) {
    const value = params[param];
    const supported: unknown = row[list];
    if (value === undefined || value === null || !Array.isArray(supported) || supported.includes(value)) continue;
    const [first] = supported;
    if (typeof value !== typeof first) {
      const fix = supported.includes(Number(value)) ? ` Pass ${param}: ${Number(value)}.` : '';
      throwInvalidParam(code, param, `must be a ${typeof first}, not ${formatValue(value)}.${fix}`);
    }
    throwInvalidParam(
      code,
      param,
      `must be one of ${supported.map(formatValue).join(', ')} for ${model}, not ${formatValue(value)}.`,
    );
  }
}

/**
 * Warns about URLs that the service probably can't reach. The message doesn't contain the URL, because it may include a
 * secret.
 */
function adviseHttps(params: Fields, warn: (message: string) => void): void {
  for (const [param, value] of Object.entries(params)) {
    if (urlsIn(param, value).some(isUnreachable))
      warn(`${param}: the service needs a public URL that starts with https://.`);
  }
}

/** URLs of this machine. */
const LOOPBACK = /^https:\/\/(localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?\])([:/?#]|$)/i;

/** Returns true if the URL is not public HTTPS. */
function isUnreachable(url: unknown): boolean {
  return typeof url === 'string' && (!/^https:/i.test(url) || LOOPBACK.test(url));
}

function isNonBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

function aliases(matches: (row: ModelCapabilities) => boolean): string {
  return Object.entries<ModelCapabilities>(MODELS)
    .flatMap(([alias, row]) => (matches(row) ? alias : []))
    .join(', ');
}

function contentOf(params: Fields): Fields[] {
  return [params.content].flat().filter(isFields);
}

/** Returns advice for a model that the service rejected: the alias that it probably misspells, or ''. */
export function modelAdvice(model: unknown): string {
  return typeof model === 'string' ? didYouMean(model, Object.keys(MODELS), { otherwise: '' }) : '';
}

/** Validates params of POST /v1/characters in register mode. */
export function checkRegistration(body: unknown, _warn?: unknown, options?: CheckOptions): void {
  const params = paramsOf('registration', body, options);
  requireText(params, 'name');
  // A file is validated during its upload.
  if (typeof params.upload_id === 'string' || !isGiven(params.upload_id)) requireText(params, 'upload_id');
}

/** Validates params of POST /v1/characters in prompt mode. */
export function checkCharacter(body: unknown, _warn?: unknown, options?: CheckOptions): void {
  const params = paramsOf('characters', body, options);
  requireText(params, 'name');
  requirePrompt(params);
}

export function checkImage(body: unknown, warn: (message: string) => void, options?: CheckOptions): void {
  const params = paramsOf('images', body, options);
  requirePrompt(params);
  requireSupported(params, 'image', options);
  adviseHttps(params, warn);
}

export function checkVideo(body: unknown, warn: (message: string) => void, options?: CheckOptions): void {
  const rules = { ...options, fallback: DEFAULT_VIDEO_MODEL };
  const isEdit = isFields(body) && body.intent === 'video_edit';
  const params = paramsOf('videos', body, options);
  if (isEdit) {
    checkEdit(params, warn, rules);
    return;
  }
  const content = contentOf(params);
  requirePrompt(params, content);
  requireSupported(params, 'video', rules);
  const frame =
    firstGiven(params, FRAME_FIELDS) ?? (content.some((item) => item.role === 'first_frame') ? 'content' : undefined);
  const image = firstGiven(params, REFERENCE_IMAGE_FIELDS);
  if (frame !== undefined && image !== undefined) {
    throwInvalidParam(
      'reference_combination_not_supported',
      image,
      `cannot be combined with ${frame}. Send frames or reference images.`,
    );
  }
  if (isGiven(params.camera_fixed) && (frame ?? image) !== undefined) {
    warn(`camera_fixed: cannot be combined with ${frame ?? image}. Remove it.`);
  }
  adviseHttps(params, warn);
}

/** Validates params of an edit. */
export function checkVideoEdit(body: unknown, warn: (message: string) => void, options: CheckOptions = {}): void {
  const params = paramsOf('videoEdits', body, options);
  checkEdit(params, warn, options);
}

function checkEdit(params: Fields, warn: (message: string) => void, options: CheckOptions): void {
  const model = params.model ?? options.fallback;
  if (!modelCapabilities(`${model}`)?.edits) {
    const problem = model === undefined ? 'is required' : `${formatValue(model)} does not support edits`;
    const editors = aliases(({ edits }) => edits === true);
    throwInvalidParam('video_edit_model_not_supported', 'model', `${problem}. Use ${editors}.`);
  }
  const content = contentOf(params);
  // The documentation doesn't say if a clip in `content` can be the source, so leave it to the service.
  const hasSource = firstGiven(params, EDIT_SOURCE_FIELDS) !== undefined || content.some((item) => item.video_url);
  if (!hasSource) {
    throwInvalidParam(
      'video_edit_source_required',
      'source_video_upload_id',
      `is required. Pass one of ${EDIT_SOURCE_FIELDS.join(', ')}.`,
    );
  }
  requirePrompt(params, content);
  // The default ratio of an edit is valid for every model.
  const ratio = params.ratio === 'adaptive' ? undefined : params.ratio;
  requireSupported({ ...params, ratio }, 'video', options);
  adviseHttps(params, warn);
}
