// Written by hand, because the file must be the same bytes each time: muxers stamp it with the time of day.

/** Two equal H.264 key frames that are shown in turn for the whole length. */
export interface Still {
  readonly width: number;
  readonly height: number;
  readonly seconds: number;
  readonly sequence: Uint8Array;
  readonly parameters: Uint8Array;
  /** Of the same size. */
  readonly frames: readonly [Uint8Array, Uint8Array];
  /** Kept in the file beside the picture. */
  readonly comment: string;
}

type Part = Uint8Array | readonly number[];

/** Ticks per second, of the movie and of its track. */
const TIME_SCALE = 12_288;
/** Frames per second. A player that seeks finds one at every half second. */
const RATE = 2;
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap(u32);

/** A whole MP4 file. The index comes before the frame, so that the file plays while it loads. */
export function writeMp4(still: Still): Uint8Array<ArrayBuffer> {
  const type = box('ftyp', ascii('isom'), u32(512), ascii('isomiso2avc1mp41'));
  const comment = box('free', new TextEncoder().encode(still.comment));
  const frameAt = type.length + comment.length + movie(still, 0).length + 8;
  const frames = still.frames.flatMap((frame) => [u32(frame.length), frame]);
  return joinParts([type, movie(still, frameAt), comment, box('mdat', ...frames)]);
}

function movie(still: Still, frameAt: number): Uint8Array {
  const { width, height, seconds } = still;
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
  const info = box('minf', box('vmhd', u32(1), zeros(8)), location, samples(still, { count, frameTicks, frameAt }));
  return box('moov', header, box('trak', trackHeader, box('mdia', mediaHeader, handler, info)));
}

function samples(
  { width, height, sequence, parameters, frames: [frame] }: Still,
  { count, frameTicks, frameAt }: { readonly count: number; readonly frameTicks: number; readonly frameAt: number },
): Uint8Array {
  const size = frame.length + 4;
  // Each frame is a chunk of its own, so that all of them lie at one of two places.
  const places = Array.from({ length: count }, (_, at) => u32(frameAt + (at % 2) * size)).flat();
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
    box('stts', u32(0), u32(1), u32(count), u32(frameTicks)),
    box('stsc', u32(0), u32(1), u32(1), u32(1), u32(1)),
    box('stsz', u32(0), u32(size), u32(count)),
    box('stco', u32(0), u32(count), places),
  );
}

function box(name: string, ...parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  return joinParts([u32(size), ascii(name), ...parts]);
}

function joinParts(parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
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
