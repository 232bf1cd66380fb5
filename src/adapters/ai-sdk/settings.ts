// Converts the settings and files of an AI SDK call to the service's params.
import type {
  Experimental_VideoModelV4CallOptions,
  ImageModelV4CallOptions,
  SharedV4ProviderOptions,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { MODELS, modelCapabilities, ratiosOf } from '../../catalog.js';
import { CREATE_AND_WAIT_CHECKS, type CreateOptions } from '../../client/create-options.js';
import { GenError, PreflightError } from '../../errors/index.js';
import { INVALID_PARAMS } from '../../rules/fields.js';
import * as option from '../../rules/options.js';
import { nearest, noSuchOption } from '../../schemas/spelling.js';
import { idempotencyKeyOf } from '../../transport/idempotency.js';
import { recoverRules } from '../../waiting/wait-options.js';

/** Settings in `providerOptions.gen`: options of `createAndWait`, and params of the service. */
export interface GenProviderOptions {
  /** Idempotency key of the first output. The keys of other outputs are derived from it. @default a new UUID per call */
  readonly idempotencyKey?: string;
  /** Poll interval in milliseconds. @default the client's schedule */
  readonly pollIntervalMs?: number;
  /** Maximum wait in milliseconds, or `false` for no timeout. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false;
  /** Maximum retries per request. @default the client's setting (3) */
  readonly maxRetries?: number;
  /** If true, validates the params before sending them. @default the client's setting (true) */
  readonly preflight?: boolean;
  /** Retries for failed jobs, as in `createAndWait`. Not supported with `poll`, `webhook`, or `startVideo`. */
  readonly recover?: CreateOptions['recover'];
  /** If true, resubmits a job whose reference is still under review, as in `createAndWait`. @default true */
  readonly resubmitPending?: boolean;
  /** `after-job` deletes the call's uploads after its job. Not supported with `poll`, `webhook`, or `startVideo`. */
  readonly cleanup?: 'after-job';
  /** Your own name for the job in events, the store, and spans. Never sent to the service. */
  readonly label?: string;
  /** Any param of the service, sent unchanged: `resolution`, `character_ids`, `camera_fixed`, … */
  readonly [field: string]: unknown;
}

export type CallOptions = Pick<
  GenProviderOptions,
  'pollIntervalMs' | 'timeoutMs' | 'maxRetries' | 'preflight' | 'recover' | 'resubmitPending' | 'cleanup' | 'label'
>;

/** Parsed call options and service params. */
export interface ParsedProviderOptions {
  readonly idempotencyKey: string | undefined;
  readonly options: CallOptions;
  readonly fields: Record<string, unknown>;
}

const NAME = 'providerOptions.gen';
const PROVIDER_CHECKS = {
  idempotencyKey: option.text,
  pollIntervalMs: option.milliseconds,
  timeoutMs: option.timeoutOrFalse,
  maxRetries: option.count,
  preflight: option.flag,
  recover: option.anything,
  resubmitPending: option.flag,
  cleanup: option.oneOf('after-job'),
  label: option.text,
};
const PROVIDER_OPTIONS = option.optionsOf(PROVIDER_CHECKS);
const OPTION_NAMES = Object.keys(PROVIDER_CHECKS);
/** Options of the AI SDK or the client that must not be sent to the service. */
const UNSUPPORTED_OPTIONS: readonly string[] = [...Object.keys(CREATE_AND_WAIT_CHECKS), 'abortSignal'];

/** Parses `providerOptions.gen`. Throws a GenError for a misspelled or invalid option. */
function readProviderOptions(providerOptions: Readonly<Record<string, unknown>>): ParsedProviderOptions {
  const gen = providerOptions.gen ?? {};
  if (typeof gen !== 'object' || Array.isArray(gen))
    throw new GenError(`${NAME} must be an object such as { timeoutMs: 600_000 }.`);
  const optionValues: Record<string, unknown> = {};
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(gen)) {
    if (OPTION_NAMES.includes(name)) optionValues[name] = value;
    else if (name !== 'idempotency_key') fields[checkedField(name)] = value;
  }
  option.checkOptions(NAME, PROVIDER_OPTIONS, optionValues);
  const { idempotencyKey: key = Reflect.get(gen, 'idempotency_key'), ...options } = optionValues as GenProviderOptions;
  recoverRules(options.recover);
  // Null is an error, as for the client's keys.
  const idempotencyKey = key === undefined ? undefined : idempotencyKeyOf(key, undefined);
  return { idempotencyKey, options, fields };
}

/** Throws for options that need the client's own wait, because here the AI SDK waits. */
export function rejectWaitingOptions({ options }: ParsedProviderOptions): void {
  for (const name of ['recover', 'cleanup'] as const) {
    if (options[name] === undefined) continue;
    throw new GenError(
      `${NAME}.${name} works only in generateVideo without poll and webhook, because otherwise the AI SDK waits for the job itself. Remove it.`,
    );
  }
}

/** Returns the name of a service param. Throws for a misspelled option or an option of another call. */
function checkedField(name: string): string {
  if (UNSUPPORTED_OPTIONS.includes(name) || nearest(name, OPTION_NAMES) !== undefined)
    throw new GenError(noSuchOption(NAME, name, OPTION_NAMES));
  return name;
}

/** Tolerance for matching a size to a ratio, because encoders round sizes to multiples of 8 or 16. */
const RATIO_TOLERANCE = 0.02;
/** All ratios, for unknown models. */
const ALL_RATIOS = [...new Set(Object.values(MODELS).flatMap(ratiosOf))];
/** Resolution by the frame's shorter side in pixels. */
const RESOLUTION_OF: Readonly<Record<number, string>> = { 480: '480p', 720: '720p', 1080: '1080p', 2160: '4k' };

export type VideoCall = Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string };

/** A call converted to the service's params. */
export interface PreparedCall {
  readonly body: Record<string, unknown>;
  readonly parsed: ParsedProviderOptions;
  /** Warnings about settings that the service doesn't support. */
  readonly warnings: SharedV4Warning[];
}

/** Builds the body of POST /v1/images. */
export function prepareImage(modelId: string, call: ImageModelV4CallOptions): PreparedCall {
  const { size, aspectRatio, seed, mask, files = [] } = call;
  const warnings: SharedV4Warning[] = [];
  const fields: Record<string, unknown> = {};
  if (seed !== undefined) warnings.push(unsupported('seed', 'The service does not support a seed for images.'));
  if (aspectRatio !== undefined) fields.ratio = aspectRatio;
  if (size !== undefined) {
    const ratio = ratioOf(size, modelId);
    if (aspectRatio !== undefined) warnings.push(unsupported('size', 'aspectRatio takes precedence.'));
    else if (ratio === undefined) warnings.push(unsupported('size', `${size} is not one of the model's ratios.`));
    else {
      fields.ratio = ratio;
      warnings.push({ type: 'compatibility', feature: 'size', details: `${size} was sent as ratio ${ratio}.` });
    }
  }
  if (mask) {
    const fix = 'Omit prompt.mask, and describe the edit in the prompt.';
    throw new PreflightError(`generateImage: the service does not support masked edits. ${fix}`, {
      code: INVALID_PARAMS,
      param: 'mask',
    });
  }
  const references = referenceFields(files, () => ['reference_upload_ids', 'reference_image_urls']);
  return buildCall(modelId, call, { ...fields, ...references }, warnings);
}

/** Builds the body of POST /v1/videos. A `{width}x{height}` becomes a resolution and, if `aspectRatio` is missing, a ratio. */
export function prepareVideo(modelId: string, call: VideoCall): PreparedCall {
  const { aspectRatio, resolution, duration, fps, seed, generateAudio, webhookUrl } = call;
  const warnings: SharedV4Warning[] = [];
  const fields: Record<string, unknown> = {};
  if (fps !== undefined) warnings.push(unsupported('fps', 'The service does not support setting a frame rate.'));
  if (duration !== undefined) fields.duration = duration;
  if (seed !== undefined) fields.seed = seed;
  if (generateAudio !== undefined) fields.generate_audio = generateAudio;
  if (aspectRatio === 'adaptive') {
    warnings.push(
      unsupported('aspectRatio', 'The service does not document an adaptive ratio for new videos. Omit it.'),
    );
  } else if (aspectRatio !== undefined) fields.aspect_ratio = aspectRatio;
  if (resolution !== undefined) {
    const [width = 0, height = 0] = resolution.split('x').map(Number);
    const name = RESOLUTION_OF[Math.min(width, height)];
    if (name === undefined) {
      warnings.push(unsupported('resolution', `${resolution} is not one of 480p, 720p, 1080p, and 4k.`));
    } else {
      fields.resolution = name;
      const ratio = ratioOf(resolution, modelId);
      if (ratio !== undefined && aspectRatio === undefined) fields.aspect_ratio = ratio;
    }
  }
  if (webhookUrl !== undefined) fields.webhook_url = webhookUrl;
  return buildCall(modelId, call, { ...fields, ...videoFiles(call) }, warnings);
}

/** Adds the service params from the call's options, which take precedence and are sent unchanged. */
function buildCall(
  modelId: string,
  call: { readonly prompt: string | undefined; readonly providerOptions: SharedV4ProviderOptions },
  fields: Readonly<Record<string, unknown>>,
  warnings: SharedV4Warning[],
): PreparedCall {
  const parsed = readProviderOptions(call.providerOptions);
  return { body: { model: modelId, prompt: call.prompt ?? '', ...fields, ...parsed.fields }, parsed, warnings };
}

function unsupported(feature: string, details: string): SharedV4Warning {
  return { type: 'unsupported', feature, details };
}

/** Returns the model's ratio that matches a `{width}x{height}`. */
function ratioOf(size: string, modelId: string): string | undefined {
  const row = modelCapabilities(modelId);
  const ratios = row === undefined ? ALL_RATIOS : ratiosOf(row);
  const target = quotient(size, 'x');
  return ratios.find((ratio) => Math.abs(quotient(ratio, ':') / target - 1) <= RATIO_TOLERANCE);
}

function quotient(text: string, separator: string): number {
  const [left = 0, right = 0] = text.split(separator).map(Number);
  return left / right;
}

/** A file in the AI SDK: bytes, base64, or a URL. */
type ModelFile =
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string };

/** Returns the file fields of a video. The core can pass the first frame as `image`, as a frame, or as both. */
function videoFiles({ frameImages = [], image, inputReferences = [] }: VideoCall): Record<string, unknown> {
  const frame = (type: string) => frameImages.find(({ frameType }) => frameType === type)?.image;
  return {
    ...frameField('first_frame', frame('first_frame') ?? image),
    ...frameField('last_frame', frame('last_frame')),
    ...referenceFields(inputReferences, ({ mediaType = '' }) => {
      const kind = /^(video|audio)\//.exec(mediaType)?.[1] ?? 'image';
      return [`reference_${kind}_upload_ids`, `reference_${kind}_urls`];
    }),
  };
}

function frameField(name: string, file: ModelFile | undefined): Record<string, unknown> {
  if (file === undefined) return {};
  return file.type === 'url' ? { [`${name}_url`]: file.url } : { [`${name}_upload_id`]: blobOf(file) };
}

/** Returns the fields of references: Blobs, which the client uploads, and URLs. */
function referenceFields(
  files: readonly ModelFile[],
  fieldsOf: (file: ModelFile) => readonly [uploads: string, urls: string],
): Record<string, unknown[]> {
  const fields: Record<string, unknown[]> = {};
  for (const file of files) {
    const [uploads, urls] = fieldsOf(file);
    const [name, value] = file.type === 'url' ? [urls, file.url] : [uploads, blobOf(file)];
    fields[name] = [...(fields[name] ?? []), value];
  }
  return fields;
}

function blobOf({ data, mediaType }: ModelFile & { readonly type: 'file' }): Blob {
  const bytes = typeof data === 'string' ? Uint8Array.from(atob(data), (char) => char.charCodeAt(0)) : data;
  return new Blob([new Uint8Array(bytes)], { type: mediaType });
}
