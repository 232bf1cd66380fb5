import { encode } from 'fast-png';
import { deltaFrame, keyFrame, pictureParameters, sequenceParameters } from './h264.js';
import { writeMp4 } from './mp4.js';
import { toRgb } from './palette.js';
import { CELL, createScene, type Scene } from './scene.js';

export { type DimensionsRequest, dimensionsFor } from './dimensions.js';

/** What the sandbox makes for one job. */
export interface MediaSpec {
  readonly kind: 'image' | 'video';
  /** Pixels; even for video (see {@link dimensionsFor}). */
  readonly width: number;
  readonly height: number;
  /** Length of a video in seconds. @default 5 */
  readonly durationS?: number;
  /** Picks the colours: the same spec gives the same bytes. */
  readonly seed: number;
  /** Written large: the job's model. */
  readonly label: string;
  /** Written below it, as far as there is room. */
  readonly prompt: string;
}

const FRAMES_PER_SECOND = 24;
/** A key frame every five seconds, so that a player can jump. */
const KEY_INTERVAL = 5 * FRAMES_PER_SECOND;

/** A PNG, or an MP4 (H.264, without sound), that shows which job it belongs to. Pure: no clock, no chance, no Node API. */
export function renderMedia(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  return spec.kind === 'image' ? renderImage(spec) : renderVideo(spec);
}

function renderImage(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  const { width, height } = spec;
  const { picture, drawMoment }: Scene = createScene(spec);
  drawMoment((Math.abs(spec.seed) % 1000) / 1000, `${width} X ${height}`);
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

function renderVideo(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  const seconds = spec.durationS ?? 5;
  const count = Math.max(1, Math.round(seconds * FRAMES_PER_SECOND));
  const scene = createScene(spec);
  const { picture, band } = scene;
  let before = picture.cells;
  const frames = Array.from({ length: count }, (_, at) => {
    const now = `${(at / FRAMES_PER_SECOND).toFixed(1)} / ${seconds.toFixed(1)} S`;
    scene.drawMoment(count === 1 ? 0 : at / (count - 1), `${now}   ${spec.width} X ${spec.height}`);
    const isKey = at % KEY_INTERVAL === 0;
    const data = isKey
      ? keyFrame(picture, at / KEY_INTERVAL)
      : deltaFrame(picture, before, { number: at % KEY_INTERVAL, ...band });
    before = picture.cells.slice();
    return { data, isKey };
  });
  const format = { width: spec.width, height: spec.height, framesPerSecond: FRAMES_PER_SECOND };
  return writeMp4({ ...format, sequence: sequenceParameters(format), parameters: pictureParameters(), frames });
}
