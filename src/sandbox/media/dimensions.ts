/** What decides the size of a picture: kind, ratio and resolution, as a create names them. */
export interface DimensionsRequest {
  readonly kind: 'image' | 'video';
  /** For example `16:9`. @default 16:9 for video, 1:1 for images; so for `adaptive` and for what is not a ratio */
  readonly aspectRatio?: string | undefined;
  /** `480p` to `4k` for video, `standard` or `high` for images. @default the smallest; so for an unknown one */
  readonly resolution?: string | undefined;
}

/** Short side in pixels by video resolution. */
const SHORT_SIDES: Readonly<Record<string, number>> = { '480p': 480, '720p': 720, '1080p': 1080, '4k': 2160 };
/** The longest side that every player decodes. */
const LONGEST_SIDE = 4096;
/** The side of a square image. Other ratios have the same area. */
const IMAGE_SIDES: Readonly<Record<string, number>> = { standard: 1024, high: 2048 };

/** Width and height in pixels of what the sandbox makes; both even for video. */
export function dimensionsFor(request: DimensionsRequest): { width: number; height: number } {
  return request.kind === 'image' ? imageDimensions(request) : videoSize(request);
}

function imageDimensions({ aspectRatio, resolution }: DimensionsRequest): { width: number; height: number } {
  const [across, down] = parseRatio(aspectRatio) ?? [1, 1];
  const side = IMAGE_SIDES[resolution ?? ''] ?? 1024;
  const unit = side / Math.sqrt(across * down);
  // A whole number of units keeps the ratio exact.
  const whole = Number.isInteger(across) && Number.isInteger(down) ? Math.max(1, Math.round(unit)) : unit;
  return { width: Math.round(across * whole), height: Math.round(down * whole) };
}

function videoSize({ aspectRatio, resolution }: DimensionsRequest): { width: number; height: number } {
  const [across, down] = parseRatio(aspectRatio) ?? [16, 9];
  const short = SHORT_SIDES[resolution ?? ''] ?? 480;
  const unit = Math.min(short / Math.min(across, down), LONGEST_SIDE / Math.max(across, down));
  return { width: even(across * unit), height: even(down * unit) };
}

function even(length: number): number {
  return Math.max(16, 2 * Math.round(length / 2));
}

/** Both sides of a ratio; undefined for anything else, and beyond eight to one. */
function parseRatio(ratio: string | undefined): [number, number] | undefined {
  const match = /^(\d{1,4}(?:\.\d{1,4})?):(\d{1,4}(?:\.\d{1,4})?)$/.exec(ratio ?? '');
  const across = Number(match?.[1]);
  const down = Number(match?.[2]);
  return across / down <= 8 && down / across <= 8 ? [across, down] : undefined;
}
