import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, modelCapabilities } from '../catalog.js';
import { PreflightError, type RequestErrorCode } from '../errors/index.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import { show as showValue } from '../schemas/show.js';
import {
  checkReferences,
  EDIT_SOURCE_FIELDS,
  type FieldsCall,
  FRAME_FIELDS,
  ITEM_LISTS,
  REFERENCE_IMAGE_FIELDS,
  refuseTwins,
  refuseUndocumented,
} from './fields.js';

/** What a model's row limits: the parameter, where the row lists its values, and the service's code. */
const OFFERED: readonly (readonly [param: string, list: keyof ModelCapabilities, code: RequestErrorCode])[] = [
  ['duration', 'durations', 'duration_not_supported'],
  ['resolution', 'resolutions', 'resolution_not_supported'],
  ['ratio', 'aspectRatios', 'aspect_ratio_not_supported'],
  ['aspect_ratio', 'aspectRatios', 'aspect_ratio_not_supported'],
];

/** Parameters that hold a public URL or several. */
const URL_PARAM = /_urls?$|Urls$|^(url|video|reference_(images|videos|audios))$/;

/** What the checks of a call may be told. */
export interface CheckOptions {
  /** The model where the params name none. */
  readonly fallback?: string;
  /** What the option extraBody adds. */
  readonly extra?: Fields | undefined;
}

/**
 * The parameters of a call; none for what is not an object. Refuses a field that the call does not document, a model that is
 * not a string, and a reference that cannot be one.
 */
function paramsOf(call: FieldsCall, body: unknown, { extra }: CheckOptions = {}): Fields {
  if (typeof body === 'string') {
    refuseParam('prompt_required', 'prompt', `missing; pass an object, for example { prompt: ${showValue(body)} }.`);
  }
  const params = isFields(body) ? body : {};
  refuseUndocumented(call, params, extra);
  for (const item of [params.references, params.content].flat().filter(isFields)) refuseTwins(item);
  const { model } = params;
  if (model !== undefined && typeof model !== 'string') {
    refuseParam('model_not_found', 'model', `must be a string, not ${showValue(model)}.`);
  }
  checkReferences(params);
  return params;
}

/** Whether a parameter says something: not missing, empty or an empty list. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

/** Throws the PreflightError of `param`. */
function refuseParam(code: RequestErrorCode, param: string, problem: string): never {
  throw new PreflightError(`${param}: ${problem}`, { code, param });
}

/** The first of the parameters that says something. */
function firstGiven(params: Fields, names: readonly string[]): string | undefined {
  for (const name of names) if (isGiven(params[name])) return name;
  return undefined;
}

/** Refuses a prompt that is missing or blank where no text among the items of `content` stands in for it. */
function requirePrompt({ prompt }: Fields, content: readonly Fields[] = []): void {
  if (hasWords(prompt) || content.some((item) => hasWords(item.text))) return;
  refuseParam('prompt_required', 'prompt', `${showParam(prompt)}; give a non-empty text.`);
}

/**
 * Refuses a parameter that the spec calls required and gives no code for. Its code is the SDK's own for an answer
 * without one.
 */
function requireText(params: Fields, param: string): void {
  if (!hasWords(params[param]))
    refuseParam('http_400', param, `${showParam(params[param])}; a non-empty string is required.`);
}

/** Refuses a known alias of another kind, and what the row of a known alias does not list. */
function requireOffered(params: Fields, kind: ModelCapabilities['kind'], { fallback }: CheckOptions = {}): void {
  const model = params.model ?? fallback;
  const row = typeof model === 'string' ? modelCapabilities(model) : undefined;
  if (row === undefined) return;
  if (row.kind !== kind) {
    refuseParam(
      'model_not_found',
      'model',
      `"${model}" makes no ${kind}s; use ${aliases((other) => other.kind === kind)}.`,
    );
  }
  for (const [param, list, code] of OFFERED) {
    const value = params[param];
    const offered: unknown = row[list];
    if (value === undefined || value === null || !Array.isArray(offered) || offered.includes(value)) continue;
    refuseParam(
      code,
      param,
      `${showParam(value)} is not offered by ${model}; it offers ${offered.map(showParam).join(', ')}.`,
    );
  }
}

/**
 * Warns of public URLs that are not https: guidance, since only the service knows what it can reach. Names the
 * parameter and not the URL, which may carry a secret.
 */
function adviseHttps(params: Fields, warn: (message: string) => void): void {
  for (const [param, value] of Object.entries(params)) {
    const isList = ITEM_LISTS.includes(param);
    if (!isList && !URL_PARAM.test(param)) continue;
    const urls = isList ? [value].flat().filter(isFields).flatMap(urlsIn) : [value].flat();
    if (urls.some(isInsecure)) warn(`${param}: a public URL should start with https://.`);
  }
}

function urlsIn(item: Fields): unknown[] {
  return Object.entries(item).flatMap(([name, urls]) => (URL_PARAM.test(name) ? urls : []));
}

/** Whether `value` is a text with more than blanks. */
function hasWords(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** The aliases whose row passes, as a message lists them. */
function aliases(passes: (row: ModelCapabilities) => boolean): string {
  return Object.entries<ModelCapabilities>(MODELS)
    .flatMap(([alias, row]) => (passes(row) ? alias : []))
    .join(', ');
}

/** The items of `content`. */
function contentOf(params: Fields): Fields[] {
  return [params.content].flat().filter(isFields);
}

/** A value as a message shows it. */
function showParam(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : value === undefined ? 'missing' : String(value);
}

function isInsecure(value: unknown): boolean {
  // A clip among the items of `content` is an object with its URL inside.
  const url = isFields(value) ? value.url : value;
  return typeof url === 'string' && !/^https:/i.test(url);
}

/** The documented rules of POST /v1/characters in register mode. */
export function checkRegistration(body: unknown, _warn?: unknown, options?: CheckOptions): void {
  const params = paramsOf('registration', body, options);
  requireText(params, 'name');
  // A file is uploaded, and its description is checked then.
  if (typeof params.upload_id === 'string' || !isGiven(params.upload_id)) requireText(params, 'upload_id');
}

/** The documented rules of POST /v1/characters in prompt mode. */
export function checkCharacter(body: unknown, _warn?: unknown, options?: CheckOptions): void {
  const params = paramsOf('characters', body, options);
  requireText(params, 'name');
  requirePrompt(params);
}

/** The documented rules of POST /v1/images. */
export function checkImage(body: unknown, warn: (message: string) => void, options?: CheckOptions): void {
  const params = paramsOf('images', body, options);
  requirePrompt(params);
  requireOffered(params, 'image', options);
  adviseHttps(params, warn);
}

/** The documented rules of POST /v1/videos. */
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
  requireOffered(params, 'video', rules);
  const frame =
    firstGiven(params, FRAME_FIELDS) ?? (content.some((item) => item.role === 'first_frame') ? 'content' : undefined);
  const image = firstGiven(params, REFERENCE_IMAGE_FIELDS);
  if (frame !== undefined && image !== undefined) {
    refuseParam(
      'reference_combination_not_supported',
      image,
      `cannot go beside ${frame}; send frames or reference images.`,
    );
  }
  if (isGiven(params.camera_fixed) && (frame ?? image) !== undefined) {
    warn(`camera_fixed: leave it out beside ${frame ?? image}.`);
  }
  adviseHttps(params, warn);
}

/** The documented rules of an edit. With `intent` on a video, `options.fallback` is the model. */
export function checkVideoEdit(body: unknown, warn: (message: string) => void, options: CheckOptions = {}): void {
  const params = paramsOf('videoEdits', body, options);
  checkEdit(params, warn, options);
}

function checkEdit(params: Fields, warn: (message: string) => void, options: CheckOptions): void {
  const model = params.model ?? options.fallback;
  if (!modelCapabilities(`${model}`)?.edits) {
    const problem = `${showParam(model)} takes no edits; use ${aliases(({ edits }) => edits === true)}.`;
    refuseParam('video_edit_model_not_supported', 'model', problem);
  }
  const content = contentOf(params);
  // A clip in `content` may be meant as the source: the service knows, the document does not say.
  const hasSource = firstGiven(params, EDIT_SOURCE_FIELDS) !== undefined || content.some((item) => item.video_url);
  if (!hasSource) {
    refuseParam(
      'video_edit_source_required',
      'source_video_upload_id',
      `missing; give one of ${EDIT_SOURCE_FIELDS.join(', ')}.`,
    );
  }
  requirePrompt(params, content);
  // The documented default of an edit, whatever its model lists.
  const ratio = params.ratio === 'adaptive' ? undefined : params.ratio;
  requireOffered({ ...params, ratio }, 'video', options);
  adviseHttps(params, warn);
}
