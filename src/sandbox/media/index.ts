import { encode } from 'fast-png';
import { type Color, writeMp4 } from './video.js';

export interface MediaSpec {
  readonly kind: 'image' | 'video';
  /** Pixels; even for video. */
  readonly width: number;
  /** Pixels; even for video. */
  readonly height: number;
  readonly durationS?: number;
  readonly seed: number;
  /** Written into the file with the prompt: the job's model. */
  readonly label: string;
  readonly prompt: string;
}

/** What decides how a file looks, as a create names it. */
export interface FileSpec extends Omit<MediaSpec, 'width' | 'height'> {
  readonly aspectRatio: string;
  readonly resolution: string;
}

/** The file of a spec: always the same bytes. */
export type RenderFile = (spec: FileSpec) => { readonly bytes: Uint8Array<ArrayBuffer>; readonly contentType: string };

const BANDS = 16;
/** Rendered files that are kept, of 200 kB at most; the oldest go first. */
const KEPT_FILES = 200;

/** Renders files when they are first asked for, and keeps the latest. */
export function createMediaCache(): RenderFile {
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  return (spec) => {
    const name = JSON.stringify(spec);
    const bytes = kept.get(name) ?? renderMedia({ ...spec, ...dimensionsFor(spec) });
    kept.set(name, bytes);
    const [oldest = name] = kept.keys();
    if (kept.size > KEPT_FILES) kept.delete(oldest);
    return { bytes, contentType: spec.kind === 'image' ? 'image/png' : 'video/mp4' };
  };
}

/**
 * A PNG, or an MP4 (H.264, the same key frame twice a second, without sound). The colours follow from the seed, and the file
 * contains the model and the prompt as text. The same spec gives the same bytes.
 */
export function renderMedia(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  const { kind, width, height, durationS = 5, label, prompt } = spec;
  const bands = bandsOf(spec.seed, Math.ceil(width / 16));
  const comment = `${label}\n${prompt}`;
  if (kind === 'video') return writeMp4({ width, height, seconds: durationS, columns: bands, comment });
  const data = new Uint8Array(width * height);
  for (let x = 0; x < width; x++) data[x] = x >> 4;
  for (let y = 1; y < height; y++) data.copyWithin(y * width, 0, width);
  // The text of a PNG is Latin-1.
  const text = { Comment: comment.replace(/[^\n\x20-\x7e]/gu, '?') };
  return new Uint8Array(encode({ width, height, data, depth: 8, channels: 1, palette: bands.map(toRgb), text }));
}

/** Bands of one hue, from dark to light. The seed picks the hue, so that two jobs are told apart at a glance. */
function bandsOf(seed: number, count: number): Color[] {
  // By the golden ratio, neighbouring seeds have hues far apart.
  const hue = 2 * Math.PI * ((seed * 0.618_033_988_749_895) % 1);
  const colors = Array.from({ length: BANDS }, (_, at) => ({
    y: Math.round(60 + (110 * at) / BANDS),
    cb: Math.round(128 + 50 * Math.cos(hue)),
    cr: Math.round(128 + 50 * Math.sin(hue)),
  }));
  return Array.from(
    { length: count },
    (_, at) => colors[Math.floor((at * BANDS) / count)] ?? { y: 16, cb: 128, cr: 128 },
  );
}

/** The same colour as red, green and blue (BT.709, video range). */
function toRgb({ y, cb, cr }: Color): [number, number, number] {
  const luma = (y - 16) / 219;
  const blue = (cb - 128) / 112;
  const red = (cr - 128) / 112;
  const part = (value: number) => Math.round(255 * Math.min(1, Math.max(0, value)));
  return [part(luma + 0.7874 * red), part(luma - 0.0937 * blue - 0.2341 * red), part(luma + 0.9278 * blue)];
}

/** Short side in pixels by video resolution. */
const SHORT_SIDES: Readonly<Record<string, number>> = { '480p': 480, '720p': 720, '1080p': 1080, '4k': 2160 };
/** The longest side that every player decodes. */
const LONGEST_SIDE = 4096;
/** The side of a square image. Other ratios have the same area. */
const IMAGE_SIDES: Readonly<Record<string, number>> = { standard: 1024, high: 2048 };

/** Width and height in pixels of what the sandbox makes; both even for video. A ratio that is none is the usual one. */
export function dimensionsFor({
  kind,
  aspectRatio = '',
  resolution = '',
}: Pick<MediaSpec, 'kind'> & { readonly [K in 'aspectRatio' | 'resolution']?: string | undefined }) {
  const usual = kind === 'image' ? '1:1' : '16:9';
  const [across = 1, down = 1] = (/^\d+:\d+$/.test(aspectRatio) ? aspectRatio : usual).split(':').map(Number);
  if (kind === 'video') {
    const short = SHORT_SIDES[resolution] ?? 480;
    const unit = Math.min(short / Math.min(across, down), LONGEST_SIDE / Math.max(across, down));
    return { width: even(across * unit), height: even(down * unit) };
  }
  // A whole number of units keeps the ratio exact.
  const unit = Math.round((IMAGE_SIDES[resolution] ?? 1024) / Math.sqrt(across * down));
  return { width: across * unit, height: down * unit };
}

function even(length: number): number {
  return 2 * Math.round(length / 2);
}
