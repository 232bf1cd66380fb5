import { encode } from 'fast-png';
import type { ImageModel, MODELS, VideoModel } from '../../catalog.js';

export interface MediaSpec {
  readonly kind: 'image' | 'video';
  /** Width in pixels. Must be even for a video. */
  readonly width: number;
  /** Height in pixels. Must be even for a video. */
  readonly height: number;
  readonly durationS?: number;
  readonly seed: number;
  /** Model ID. Written to the file together with the prompt. */
  readonly label: string;
  readonly prompt: string;
}

/**
 * Renders a PNG or a silent MP4 (H.264, two key frames per second, all of the same picture). The seed determines the color. The
 * same spec always returns the same bytes.
 */
export function renderMedia(spec: MediaSpec): Uint8Array<ArrayBuffer> {
  const { kind, width, height, durationS = 5, label, prompt } = spec;
  // With the golden ratio, the hues of consecutive seeds are far apart.
  const hue = 2 * Math.PI * ((spec.seed * 0.618_033_988_749_895) % 1);
  const color = { y: 115, cb: Math.round(128 + 50 * Math.cos(hue)), cr: Math.round(128 + 50 * Math.sin(hue)) };
  const comment = `${label}\n${prompt}`;
  if (kind === 'video') return writeMp4({ width, height, seconds: durationS, color, comment });
  const data = new Uint8Array(width * height);
  // Text in a PNG is Latin-1.
  const text = { Comment: comment.replace(/[^\n\x20-\x7e]/gu, '?') };
  return new Uint8Array(encode({ width, height, data, depth: 8, channels: 1, palette: [toRgb(color)], text }));
}

/** Converts a BT.709 color in video range to RGB. */
function toRgb({ y, cb, cr }: Color): [number, number, number] {
  const luma = (y - 16) / 219;
  const blue = (cb - 128) / 112;
  const red = (cr - 128) / 112;
  const toByte = (value: number) => Math.round(255 * Math.min(1, Math.max(0, value)));
  return [toByte(luma + 0.7874 * red), toByte(luma - 0.0937 * blue - 0.2341 * red), toByte(luma + 0.9278 * blue)];
}

/** Requires a number for each resolution of these models, so that a new resolution without a size doesn't compile. */
type EachResolution<A extends keyof typeof MODELS> = Record<(typeof MODELS)[A]['resolutions'][number], number>;

/** Short side of a video in pixels, by resolution. */
const SHORT_SIDES: Readonly<Record<string, number>> = {
  '480p': 480,
  '720p': 720,
  '1080p': 1080,
  '4k': 2160,
} satisfies EachResolution<VideoModel>;
/** Longest side in pixels that every player can decode. */
const MAX_SIDE = 4096;
/** Side of a square image in pixels, by resolution. Other ratios have the same area. */
const IMAGE_SIDES: Readonly<Record<string, number>> = {
  standard: 1024,
  high: 2048,
} satisfies EachResolution<ImageModel>;

/** Returns the dimensions of a job's file in pixels. A ratio without numbers, such as `adaptive`, uses the default. */
export function dimensionsFor({
  kind,
  aspectRatio = '',
  resolution = '',
}: Pick<MediaSpec, 'kind'> & { readonly [K in 'aspectRatio' | 'resolution']?: string | undefined }) {
  const defaultRatio = kind === 'image' ? '1:1' : '16:9';
  const [ratioWidth = 1, ratioHeight = 1] = (/^\d+:\d+$/.test(aspectRatio) ? aspectRatio : defaultRatio)
    .split(':')
    .map(Number);
  if (kind === 'video') {
    const shortSide = SHORT_SIDES[resolution] ?? 480;
    const unit = Math.min(shortSide / Math.min(ratioWidth, ratioHeight), MAX_SIDE / Math.max(ratioWidth, ratioHeight));
    return { width: roundToEven(ratioWidth * unit), height: roundToEven(ratioHeight * unit) };
  }
  // An integer unit keeps the ratio exact.
  const unit = Math.round((IMAGE_SIDES[resolution] ?? 1024) / Math.sqrt(ratioWidth * ratioHeight));
  return { width: ratioWidth * unit, height: ratioHeight * unit };
}

function roundToEven(length: number): number {
  return 2 * Math.round(length / 2);
}

// Written without a muxer, because muxers add the current time, and the bytes must be reproducible.

/** A video of a single color. */
interface SolidColorVideo {
  readonly width: number;
  readonly height: number;
  readonly seconds: number;
  readonly color: Color;
  readonly comment: string;
}

type Part = Uint8Array | readonly number[];

/** Ticks per second, of the movie and of its track. */
const TIME_SCALE = 12_288;
/** Frames per second. All are key frames, so players can seek to any of them. */
const RATE = 2;
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap(u32);

/** Writes an MP4. The index comes first, so that the file plays while it loads. */
function writeMp4(video: SolidColorVideo): Uint8Array<ArrayBuffer> {
  // The same picture with two IDs, because consecutive key frames must have different IDs.
  const frames = [1, 2].map((id) => keyFrame(video, id));
  const size = (frames[0]?.length ?? 0) + 4;
  const type = box('ftyp', ascii('isom'), u32(512), ascii('isomiso2avc1mp41'));
  const comment = box('free', new TextEncoder().encode(video.comment));
  const at = type.length + comment.length + movie(video, { size, at: 0 }).length + 8;
  const data = box('mdat', ...frames.flatMap((frame) => [u32(frame.length), frame]));
  return joinParts([type, movie(video, { size, at }), comment, data]);
}

interface FrameLocation {
  readonly size: number;
  readonly at: number;
}

function movie(video: SolidColorVideo, frame: FrameLocation): Uint8Array {
  const { width, height, seconds } = video;
  const count = Math.max(1, Math.round(seconds * RATE));
  const frameTicks = Math.max(1, Math.round((seconds * TIME_SCALE) / count));
  const ticks = count * frameTicks;
  const header = box(
    'mvhd',
    [...u32(0), ...u32(0), ...u32(0), ...u32(TIME_SCALE), ...u32(ticks)],
    [...u32(0x10000), ...u16(0x100), ...zeros(10), ...MATRIX, ...zeros(24), ...u32(2)],
  );
  const trackHeader = box(
    'tkhd',
    [...u32(3), ...u32(0), ...u32(0), ...u32(1), ...u32(0), ...u32(ticks)],
    [...zeros(16), ...MATRIX, ...u32(width * 0x10000), ...u32(height * 0x10000)],
  );
  const mediaHeader = box('mdhd', [...zeros(12), ...u32(TIME_SCALE), ...u32(ticks), ...u16(0x55c4), ...u16(0)]);
  const handler = box('hdlr', u32(0), u32(0), ascii('vide'), zeros(12), ascii('Video\0'));
  const location = box('dinf', box('dref', u32(0), u32(1), box('url ', u32(1))));
  const info = box(
    'minf',
    box('vmhd', u32(1), zeros(8)),
    location,
    samples(video, frame, { count, ticks: frameTicks }),
  );
  return box('moov', header, box('trak', trackHeader, box('mdia', mediaHeader, handler, info)));
}

function samples(
  { width, height }: SolidColorVideo,
  { size, at }: FrameLocation,
  { count, ticks }: { readonly count: number; readonly ticks: number },
): Uint8Array {
  // One chunk per frame, so all of them can point to the same two offsets.
  const offsets = Array.from({ length: count }, (_, index) => u32(at + (index % 2) * size)).flat();
  const sequence = sequenceParameters(width, height);
  const parameters = pictureParameters();
  const config = box(
    'avcC',
    [1, ...sequence.subarray(1, 4), 0xff, 0xe1, ...u16(sequence.length), ...sequence],
    [1, ...u16(parameters.length), ...parameters],
  );
  const entry = box(
    'avc1',
    [...zeros(6), ...u16(1), ...zeros(16), ...u16(width), ...u16(height)],
    [...u32(0x480000), ...u32(0x480000), ...u32(0), ...u16(1), ...zeros(32), ...u16(24), 0xff, 0xff],
    config,
    box('colr', ascii('nclx'), u16(1), u16(1), u16(1), [0]),
    box('pasp', u32(1), u32(1)),
  );
  return box(
    'stbl',
    box('stsd', u32(0), u32(1), entry),
    box('stts', u32(0), u32(1), u32(count), u32(ticks)),
    box('stsc', u32(0), u32(1), u32(1), u32(1), u32(1)),
    box('stsz', u32(0), u32(size), u32(count)),
    box('stco', u32(0), u32(count), offsets),
  );
}

function box(name: string, ...parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  return joinParts([u32(size), ascii(name), ...parts]);
}

function joinParts(parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function u32(value: number): number[] {
  return [(value >>> 24) & 0xff, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function u16(value: number): number[] {
  return [(value >> 8) & 0xff, value & 0xff];
}

function zeros(count: number): number[] {
  return new Array<number>(count).fill(0);
}

function ascii(text: string): number[] {
  return [...text].map((char) => char.charCodeAt(0));
}

// An H.264 key frame of a single color. The first macroblock has raw pixels, and the others are predicted as the mean of their
// neighbors, so the decoded color is exact without transforms or code tables.

/** A color in BT.709, video range. */
interface Color {
  readonly y: number;
  readonly cb: number;
  readonly cr: number;
}

/** Level and its maximum frame size in macroblocks (H.264, Table A-1). */
const LEVELS = [
  [30, 1620],
  [31, 3600],
  [40, 8192],
  [50, 22_080],
  [51, 36_864],
] as const;
const HIGHEST_LEVEL = 60;
const UNIT = { sequence: 0x67, picture: 0x68, key: 0x65 } as const;

/** Sequence parameter set: constrained baseline, cropped to the size. */
function sequenceParameters(width: number, height: number): Uint8Array {
  const bits = new Bits();
  const columns = Math.ceil(width / 16);
  const rows = Math.ceil(height / 16);
  const level = LEVELS.find(([, size]) => columns * rows <= size)?.[0] ?? HIGHEST_LEVEL;
  for (const value of [66, 0xc0, level]) bits.put(value, 8);
  for (const value of [0, 4, 2, 1]) bits.ue(value);
  bits.put(0, 1);
  bits.ue(columns - 1);
  bits.ue(rows - 1);
  bits.put(0b111, 3);
  for (const side of [0, (columns * 16 - width) / 2, 0, (rows * 16 - height) / 2]) bits.ue(side);
  // Color space: BT.709, video range.
  bits.put(0b1_00_1_101_0_1, 9);
  for (const value of [1, 1, 1]) bits.put(value, 8);
  bits.put(0b0_0_0_0_0_0, 6);
  return bits.unit(UNIT.sequence);
}

function pictureParameters(): Uint8Array {
  const bits = new Bits();
  for (const value of [0, 0]) bits.ue(value);
  bits.put(0b00, 2);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b000, 3);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b100, 3); // The slice disables the deblocking filter.
  return bits.unit(UNIT.picture);
}

/** Encodes a key frame. Its `id` must differ from the previous frame's. */
function keyFrame({ width, height, color: { y, cb, cr } }: SolidColorVideo, id: number): Uint8Array {
  const bits = new Bits();
  for (const value of [0, 7, 0]) bits.ue(value);
  bits.put(0, 8);
  bits.ue(id);
  bits.put(0, 2);
  for (const value of [0, 1]) bits.ue(value);
  const columns = Math.ceil(width / 16);
  // Raw macroblock: 16 x 16 pixels of luma, 8 x 8 of each chroma.
  bits.ue(25);
  bits.raw([...new Array(256).fill(y), ...new Array(64).fill(cb), ...new Array(64).fill(cr)]);
  for (let at = 1; at < columns * Math.ceil(height / 16); at++) {
    for (const value of [3, 0, 0]) bits.ue(value);
    // Coded as "no coefficients". The code depends on the neighbors, and a raw macroblock counts as full (9.2.1).
    if (at === 1 || at === columns) bits.put(0b000011, 6);
    else bits.put(1, 1);
  }
  return bits.unit(UNIT.key);
}

/** Writes bits, most significant first. */
class Bits {
  readonly #bytes: number[] = [];
  #pending = 0;
  #count = 0;

  put(value: number, count: number): void {
    for (let bit = count - 1; bit >= 0; bit--) {
      this.#pending = (this.#pending << 1) | ((value >> bit) & 1);
      this.#count += 1;
      if (this.#count < 8) continue;
      this.#bytes.push(this.#pending);
      this.#pending = 0;
      this.#count = 0;
    }
  }

  ue(value: number): void {
    const length = 32 - Math.clz32(value + 1);
    this.put(0, length - 1);
    this.put(value + 1, length);
  }

  /** Pads with zeros to the next byte, then writes bytes. */
  raw(bytes: readonly number[]): void {
    while (this.#count > 0) this.put(0, 1);
    for (const byte of bytes) this.#bytes.push(byte);
  }

  /** Appends the stop bit and returns the unit, escaped so that it contains no start code. */
  unit(type: number): Uint8Array {
    this.put(1, 1);
    while (this.#count > 0) this.put(0, 1);
    const unitBytes = [type];
    let zeros = 0;
    for (const byte of this.#bytes) {
      if (zeros >= 2 && byte <= 3) {
        unitBytes.push(3);
        zeros = 0;
      }
      unitBytes.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
    return Uint8Array.from(unitBytes);
  }
}
