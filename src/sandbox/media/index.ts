import { encode } from 'fast-png';
import { encodeFrame, pictureParameters, repeatFrame, sequenceParameters } from './h264.js';
import { writeMp4 } from './mp4.js';
import { CELL, createScene, toRgb } from './picture.js';

export { type DimensionsRequest, dimensionsFor } from './dimensions.js';

/** What the sandbox makes for one job. */
export interface MediaSpec {
  readonly kind: 'image' | 'video';
  /** Pixels; even for video (see {@link dimensionsFor}). */
  readonly width: number;
  /** Pixels; even for video. */
  readonly height: number;
  /** The length of a video in seconds. @default 5 */
  readonly durationS?: number;
  /** Picks the colours. */
  readonly seed: number;
  /** Written large: the job's model. */
  readonly label: string;
  /** Written below it, as far as there is room. */
  readonly prompt: string;
}

const FRAMES_PER_SECOND = 24;
/** How often the bar of a video grows. */
const STEPS_PER_SECOND = 2;
const FRAMES_PER_STEP = FRAMES_PER_SECOND / STEPS_PER_SECOND;

/**
 * A PNG, or an MP4 (H.264, without sound) with one key frame, that shows which job it belongs to. The same spec gives the same
 * bytes.
 */
export function renderMedia(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  return spec.kind === 'image' ? renderImage(spec) : renderVideo(spec);
}

function renderImage({ width, height, ...spec }: MediaSpec): Uint8Array<ArrayBuffer> {
  const textScale = Math.max(1, Math.floor(Math.min(width, height) / CELL / 110));
  const { picture } = createScene({ ...spec, width, height, textScale, facts: `${width} X ${height}` });
  const data = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    if (y % CELL > 0) {
      data.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    const row = (y / CELL) * picture.columns;
    for (let x = 0; x < width; x++) data[y * width + x] = picture.cells[row + Math.floor(x / CELL)] ?? 0;
  }
  const palette = picture.palette.map(toRgb);
  return new Uint8Array(encode({ width, height, data, depth: 8, channels: 1, palette }));
}

function renderVideo({ width, height, durationS = 5, ...spec }: MediaSpec): Uint8Array<ArrayBuffer> {
  const count = Math.max(1, Math.round(durationS * FRAMES_PER_SECOND));
  const steps = Math.max(1, Math.round(durationS * STEPS_PER_SECOND));
  const facts = `${width} X ${height}   ${durationS} S`;
  const { picture, drawBar } = createScene({ ...spec, width, height, facts, textScale: 1 });
  let before: Uint8Array | undefined;
  const frames = Array.from({ length: count }, (_, at) => {
    if (at % FRAMES_PER_STEP !== 0) return repeatFrame(picture, at);
    drawBar((1 + at / FRAMES_PER_STEP) / steps);
    const frame = encodeFrame(picture, at, before);
    before = picture.cells.slice();
    return frame;
  });
  const format = { width, height, framesPerSecond: FRAMES_PER_SECOND };
  return writeMp4({ ...format, sequence: sequenceParameters(format), parameters: pictureParameters(), frames });
}
