import type { Experimental_VideoModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider';
import { modelCapabilities } from '../catalog.js';
import type { ReadProviderOptions } from './provider-options.js';

/** Settings of a call in the service's own words, with what had to be left out. */
interface MappedSettings {
  readonly fields: Record<string, unknown>;
  readonly warnings: SharedV4Warning[];
}

/** How far a size may be off a ratio and still mean it: encoders round sizes to multiples of 8 or 16. */
const RATIO_TOLERANCE = 0.02;
/** Ratios that the spec names for videos. */
const VIDEO_RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'];
/** The shorter side of a frame, in pixels, and the resolution the service calls it. */
const RESOLUTION_OF: Readonly<Record<number, string>> = { 480: '480p', 720: '720p', 1080: '1080p', 2160: '4k' };

/** The setting is left out of the request, and why. */
export function unsupported(feature: string, details: string): SharedV4Warning {
  return { type: 'unsupported', feature, details };
}

/** Image settings: the ratio asked for, else the one that the size means. */
export function imageSettings(
  modelId: string,
  asked: {
    readonly size?: string | undefined;
    readonly aspectRatio?: string | undefined;
    readonly seed?: number | undefined;
  },
): MappedSettings {
  const warnings: SharedV4Warning[] = [];
  const fields: Record<string, unknown> = {};
  if (asked.seed !== undefined) warnings.push(unsupported('seed', 'The service takes no seed for images.'));
  if (asked.aspectRatio !== undefined) fields.ratio = asked.aspectRatio;
  if (asked.size !== undefined) {
    const { aspectRatios = VIDEO_RATIOS } = modelCapabilities(modelId) ?? {};
    const ratio = ratioOf(asked.size, aspectRatios);
    if (asked.aspectRatio !== undefined) warnings.push(unsupported('size', 'aspectRatio was given and decides.'));
    else if (ratio === undefined) warnings.push(unsupported('size', `${asked.size} is none of the model's ratios.`));
    else {
      fields.ratio = ratio;
      warnings.push({
        type: 'compatibility',
        feature: 'size',
        details: `${asked.size} was asked for as ratio ${ratio}.`,
      });
    }
  }
  return { fields, warnings };
}

/** Video settings: `{width}x{height}` becomes the service's resolution and, when no ratio was given, its ratio. */
function videoSettings(asked: {
  readonly aspectRatio?: string | undefined;
  readonly resolution?: string | undefined;
  readonly duration?: number | undefined;
  readonly fps?: number | undefined;
  readonly seed?: number | undefined;
  readonly generateAudio?: boolean | undefined;
}): MappedSettings {
  const warnings: SharedV4Warning[] = [];
  const fields: Record<string, unknown> = {};
  if (asked.fps !== undefined) warnings.push(unsupported('fps', 'The service takes no frame rate.'));
  if (asked.duration !== undefined) fields.duration = asked.duration;
  if (asked.seed !== undefined) fields.seed = asked.seed;
  if (asked.generateAudio !== undefined) fields.generate_audio = asked.generateAudio;
  if (asked.aspectRatio === 'adaptive') {
    warnings.push(unsupported('aspectRatio', 'Leave it out: the service documents no adaptive ratio for new videos.'));
  } else if (asked.aspectRatio !== undefined) fields.aspect_ratio = asked.aspectRatio;
  if (asked.resolution !== undefined) {
    const [width = 0, height = 0] = asked.resolution.split('x').map(Number);
    const resolution = RESOLUTION_OF[Math.min(width, height)];
    if (resolution === undefined) {
      warnings.push(unsupported('resolution', `${asked.resolution} is none of 480p, 720p, 1080p and 4k.`));
    } else {
      fields.resolution = resolution;
      const ratio = ratioOf(asked.resolution, VIDEO_RATIOS);
      if (ratio !== undefined && asked.aspectRatio === undefined) fields.aspect_ratio = ratio;
    }
  }
  return { fields, warnings };
}

/** Which of the ratios a `{width}x{height}` means. */
function ratioOf(size: string, ratios: readonly string[]): string | undefined {
  const wanted = quotient(size, 'x');
  return ratios.find((ratio) => Math.abs(quotient(ratio, ':') / wanted - 1) <= RATIO_TOLERANCE);
}

function quotient(text: string, separator: string): number {
  const [left = 0, right = 0] = text.split(separator).map(Number);
  return left / right;
}

/** A file as the AI SDK hands it over: bytes, base64 text, or an address. */
type ModelFile =
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string };

/** Where a file goes: a file by value under one field, a public URL under another. */
interface InputSlot {
  readonly uploadField: string;
  readonly urlField: string;
  readonly many: boolean;
}

/** A file and the fields that may hold it. */
interface InputFile {
  readonly file: ModelFile;
  readonly slot: InputSlot;
}

/** The start image. */
const FIRST_FRAME: InputSlot = single('first_frame');
/** The end image. */
const LAST_FRAME: InputSlot = single('last_frame');
/** A reference image of an image job. */
export const IMAGE_REFERENCE: InputSlot = {
  uploadField: 'reference_upload_ids',
  urlField: 'reference_image_urls',
  many: true,
};

/** The reference field that fits a file's kind: image, video or audio. */
function referenceSlot(file: ModelFile): InputSlot {
  const kind = /^(video|audio)\//.exec(file.mediaType ?? '')?.[1] ?? 'image';
  return { uploadField: `reference_${kind}_upload_ids`, urlField: `reference_${kind}_urls`, many: true };
}

function single(name: string): InputSlot {
  return { uploadField: `${name}_upload_id`, urlField: `${name}_url`, many: false };
}

/** The files as fields of a body. The client uploads the Blobs, as it does for every caller. */
export function inputFields(files: readonly InputFile[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const { file, slot } of files) {
    const [field, value] = file.type === 'url' ? [slot.urlField, file.url] : [slot.uploadField, blobOf(file)];
    const before = fields[field];
    fields[field] = slot.many ? [...(Array.isArray(before) ? before : []), value] : value;
  }
  return fields;
}

function blobOf({ data, mediaType }: ModelFile & { readonly type: 'file' }): Blob {
  const bytes = typeof data === 'string' ? Uint8Array.from(atob(data), (char) => char.charCodeAt(0)) : data;
  return new Blob([new Uint8Array(bytes)], { type: mediaType });
}

/** A call of the AI SDK's core for videos. */
export type VideoCall = Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string };

/** A video call in the service's own words. */
export interface PreparedVideo {
  readonly body: Record<string, unknown>;
  readonly own: ReadProviderOptions;
  readonly warnings: SharedV4Warning[];
}

/** Turns the settings of a call into the body of POST /v1/videos. */
export function prepareVideo(modelId: string, call: VideoCall, own: ReadProviderOptions): PreparedVideo {
  const { fields, warnings } = videoSettings(call);
  const body = {
    model: modelId,
    prompt: call.prompt ?? '',
    ...fields,
    ...inputFields(callFiles(call)),
    ...(call.webhookUrl !== undefined && { webhook_url: call.webhookUrl }),
    ...own.fields,
  };
  return { body, own, warnings };
}

/** The start image comes once, whether the core gives it as `image`, as a frame, or as both. */
function callFiles(call: VideoCall): InputFile[] {
  const frames = call.frameImages ?? [];
  const first = frames.find((frame) => frame.frameType === 'first_frame')?.image ?? call.image;
  const last = frames.find((frame) => frame.frameType === 'last_frame')?.image;
  return [
    ...(first ? [{ file: first, slot: FIRST_FRAME }] : []),
    ...(last ? [{ file: last, slot: LAST_FRAME }] : []),
    ...(call.inputReferences ?? []).map((file) => ({ file, slot: referenceSlot(file) })),
  ];
}
