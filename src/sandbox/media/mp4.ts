// Written by hand, because the file must be the same bytes each time: muxers stamp it with the time of day.

/** An H.264 track, ready to be put into a file. */
export interface VideoTrack {
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
  readonly sequence: Uint8Array;
  readonly parameters: Uint8Array;
  /** The first one is a key frame. */
  readonly frames: readonly Uint8Array[];
}

type Part = Uint8Array | readonly number[];

/** Ticks a frame takes in the track's time scale. */
const FRAME_TICKS = 512;
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap(u32);

/** A whole MP4 file. The index comes before the frames, so that the file plays while it loads. */
export function writeMp4(track: VideoTrack): Uint8Array<ArrayBuffer> {
  const type = box('ftyp', ascii('isom'), u32(512), ascii('isomiso2avc1mp41'));
  const size = movie(track, 0).length;
  const index = movie(track, type.length + size + 8);
  const frames = track.frames.flatMap((frame) => [u32(frame.length), frame]);
  return joinBytes([type, index, box('mdat', ...frames)]);
}

function movie(track: VideoTrack, firstFrameAt: number): Uint8Array {
  const { width, height, frames, framesPerSecond } = track;
  const seconds = frames.length / framesPerSecond;
  const header = box(
    'mvhd',
    [...u32(0), ...u32(0), ...u32(0), ...u32(1000), ...u32(Math.round(seconds * 1000))],
    [...u32(0x10000), ...u16(0x100), ...zeros(10), ...MATRIX, ...zeros(24), ...u32(2)],
  );
  const trackHeader = box(
    'tkhd',
    [...u32(3), ...u32(0), ...u32(0), ...u32(1), ...u32(0), ...u32(Math.round(seconds * 1000))],
    [...zeros(16), ...MATRIX, ...u32(width * 0x10000), ...u32(height * 0x10000)],
  );
  const mediaHeader = box(
    'mdhd',
    [...u32(0), ...u32(0), ...u32(0), ...u32(framesPerSecond * FRAME_TICKS), ...u32(frames.length * FRAME_TICKS)],
    [...u16(0x55c4), ...u16(0)],
  );
  const handler = box('hdlr', u32(0), u32(0), ascii('vide'), zeros(12), ascii('Video\0'));
  const location = box('dinf', box('dref', u32(0), u32(1), box('url ', u32(1))));
  const info = box('minf', box('vmhd', u32(1), zeros(8)), location, samples(track, firstFrameAt));
  return box('moov', header, box('trak', trackHeader, box('mdia', mediaHeader, handler, info)));
}

function samples({ frames, ...track }: VideoTrack, firstFrameAt: number): Uint8Array {
  const config = box(
    'avcC',
    [1, ...track.sequence.subarray(1, 4), 0xff, 0xe1],
    [
      ...[...u16(track.sequence.length), ...track.sequence, 1],
      ...[...u16(track.parameters.length), ...track.parameters],
    ],
  );
  const entry = box(
    'avc1',
    [...zeros(6), ...u16(1), ...zeros(16), ...u16(track.width), ...u16(track.height)],
    [...u32(0x480000), ...u32(0x480000), ...u32(0), ...u16(1), ...zeros(32), ...u16(24), 0xff, 0xff],
    config,
    box('colr', ascii('nclx'), u16(1), u16(1), u16(1), [0]),
    box('pasp', u32(1), u32(1)),
  );
  return box(
    'stbl',
    box('stsd', u32(0), u32(1), entry),
    box('stts', u32(0), u32(1), u32(frames.length), u32(FRAME_TICKS)),
    box('stss', u32(0), u32(1), u32(1)),
    box('stsc', u32(0), u32(1), u32(1), u32(frames.length), u32(1)),
    box(
      'stsz',
      u32(0),
      u32(0),
      u32(frames.length),
      frames.flatMap((frame) => u32(frame.length + 4)),
    ),
    box('stco', u32(0), u32(1), u32(firstFrameAt)),
  );
}

function box(name: string, ...parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  return joinBytes([u32(size), ascii(name), ...parts]);
}

function joinBytes(parts: readonly Part[]): Uint8Array<ArrayBuffer> {
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
