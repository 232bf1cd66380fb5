import { MODELS, type ModelCapabilities, modelCapabilities } from '../catalog.js';
import { PreflightError, type RequestErrorCode } from '../errors/index.js';
import { type Fields, isFields } from '../schemas/envelope.js';

/** What a model's row limits: the parameter, where the row lists its values, and the service's code. */
const OFFERED: readonly (readonly [param: string, list: keyof ModelCapabilities, code: RequestErrorCode])[] = [
  ['duration', 'durations', 'duration_not_supported'],
  ['resolution', 'resolutions', 'resolution_not_supported'],
  ['ratio', 'aspectRatios', 'aspect_ratio_not_supported'],
];

/** Parameters that hold a public URL or several. */
const URL_PARAM = /_urls?$|Urls$|^(url|video|reference_(images|videos|audios))$/;

/** Parameters that hold items with a URL inside. */
const ITEM_LISTS: readonly string[] = ['references', 'content'];

/** The parameters of a call; none for what is no object. */
export function paramsOf(body: unknown): Fields {
  return isFields(body) ? body : {};
}

/** Whether a parameter says something: not missing, empty or an empty list. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

/** Throws the PreflightError of `param`. */
export function refuse(code: RequestErrorCode, param: string, problem: string): never {
  throw new PreflightError(`${param}: ${problem}`, { code, param });
}

/** Refuses a prompt that is missing or blank. */
export function requirePrompt(params: Fields): void {
  if (!isText(params.prompt)) refuse('prompt_required', 'prompt', `${show(params.prompt)}; give a non-empty text.`);
}

/**
 * Refuses a parameter that the spec calls required and gives no code for. Its code is the SDK's own for an answer
 * without one.
 */
export function requireText(params: Fields, param: string): void {
  if (!isText(params[param])) refuse('http_400', param, `${show(params[param])}; a non-empty string is required.`);
}

/** Refuses a known alias of another kind, and what the row of a known alias does not list (spec: Model aliases). */
export function requireOffered(params: Fields, kind: ModelCapabilities['kind'], fallback?: string): void {
  const model = params.model ?? fallback;
  const row = typeof model === 'string' ? modelCapabilities(model) : undefined;
  if (row === undefined) return;
  if (row.kind !== kind) {
    refuse('model_not_found', 'model', `"${model}" makes no ${kind}s; use ${aliases((other) => other.kind === kind)}.`);
  }
  for (const [param, list, code] of OFFERED) {
    const value = params[param];
    const offered: unknown = row[list];
    if (value === undefined || value === null || !Array.isArray(offered) || offered.includes(value)) continue;
    refuse(code, param, `${show(value)} is not offered by ${model}; it offers ${offered.map(show).join(', ')}.`);
  }
}

/**
 * Warns of public URLs that are not https: guidance, since only the service knows what it can reach. Names the
 * parameter and not the URL, which may carry a secret.
 */
export function adviseHttps(params: Fields, warn: (message: string) => void): void {
  for (const [param, value] of Object.entries(params)) {
    const holders = ITEM_LISTS.includes(param) ? [value].flat().filter(isFields) : [{ [param]: value }];
    if (holders.some(holdsInsecure)) warn(`${param}: a public URL should start with https://.`);
  }
}

function holdsInsecure(holder: Fields): boolean {
  return Object.entries(holder).some(([name, urls]) => URL_PARAM.test(name) && [urls].flat().some(isInsecure));
}

/** Whether `value` is a text with more than blanks. */
function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** The aliases whose row passes, as a message lists them. */
export function aliases(passes: (row: ModelCapabilities) => boolean): string {
  return Object.entries<ModelCapabilities>(MODELS)
    .flatMap(([alias, row]) => (passes(row) ? alias : []))
    .join(', ');
}

/** The items of `content`. */
export function contentOf(params: Fields): Fields[] {
  return [params.content].flat().filter(isFields);
}

/** Refuses a prompt that is missing or blank where no text item of `content` stands in for it. */
export function requirePromptOrContent(params: Fields): void {
  if (!contentOf(params).some((item) => isText(item.text))) requirePrompt(params);
}

/** A value as a message shows it. */
export function show(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : value === undefined ? 'missing' : String(value);
}

function isInsecure(value: unknown): boolean {
  // A clip among the items of `content` is an object with its URL inside.
  const url = isFields(value) ? value.url : value;
  return typeof url === 'string' && !/^https:/i.test(url);
}
