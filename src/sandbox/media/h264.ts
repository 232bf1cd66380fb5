// An H.264 stream of pictures that are made of flat cells: a macroblock either repeats the pixels above or on the left of it,
// or is written as raw pixels. What was drawn is exactly what is decoded, and no transform or code table is needed.
import type { Picture } from './picture.js';

/** Parameters that the frames of a stream share. */
export interface StreamFormat {
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
}

/** Writes bits, the most significant first. */
interface Bits {
  /** Writes the lowest `count` bits of `value`, at most 24 at once. */
  put(value: number, count: number): void;
  /** Unsigned Exp-Golomb code. */
  ue(value: number): void;
  /** Fills up with zeros to the next byte and writes whole bytes. */
  raw(bytes: Uint8Array): void;
  /** Closes with the stop bit. */
  finish(): Uint8Array;
}

/** A level's number, its largest frame in macroblocks and its most macroblocks per second (H.264, Table A-1). */
const LEVELS = [
  [30, 1620, 40_500],
  [31, 3600, 108_000],
  [40, 8192, 245_760],
  [50, 22_080, 589_824],
  [51, 36_864, 983_040],
  [60, 139_264, 4_177_920],
] as const;
const FRAME_NUMBER_BITS = 8;
const UNIT = { sequence: 0x67, picture: 0x68, key: 0x65, delta: 0x61 } as const;
/** The macroblock types of an I slice; a P slice counts them from 5 (Tables 7-11 and 7-13). */
const TYPE = { above: 1, left: 2, raw: 25 } as const;
const CHROMA_MODE = { above: 2, left: 1 } as const;
const RAW_BYTES = 256 + 64 + 64;

/** The sequence parameter set: constrained baseline, frames in order, cropped to the size. */
export function sequenceParameters({ width, height, framesPerSecond }: StreamFormat): Uint8Array {
  const bits = createBits();
  const across = Math.ceil(width / 16);
  const down = Math.ceil(height / 16);
  const fits = ([, size, rate]: (typeof LEVELS)[number]) =>
    across * down <= size && across * down * framesPerSecond <= rate;
  for (const value of [66, 0xc0, LEVELS.find(fits)?.[0] ?? 62]) bits.put(value, 8);
  for (const value of [0, FRAME_NUMBER_BITS - 4, 2, 1]) bits.ue(value); // Shown in the order in which they are decoded.
  bits.put(0, 1);
  bits.ue(across - 1);
  bits.ue(down - 1);
  bits.put(0b11, 2);
  const crop = [0, (across * 16 - width) / 2, 0, (down * 16 - height) / 2];
  bits.put(1, 1);
  for (const side of crop) bits.ue(side);
  bits.put(1, 1);
  // Usability: BT.709 in video range, a fixed rate, nothing reordered.
  bits.put(0b00_1_101_0_1, 8);
  for (const value of [1, 1, 1]) bits.put(value, 8);
  bits.put(0b01, 2);
  for (const value of [0, 1, 0, 2 * framesPerSecond]) bits.put(value, 16);
  bits.put(0b1_000_11, 6);
  for (const value of [0, 0, 10, 10, 0, 1]) bits.ue(value);
  return unit(UNIT.sequence, bits);
}

/** The picture parameter set. */
export function pictureParameters(): Uint8Array {
  const bits = createBits();
  for (const value of [0, 0]) bits.ue(value);
  bits.put(0b00, 2);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b000, 3);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b100, 3); // Each slice switches the deblocking filter off, so cells keep their edges.
  return unit(UNIT.picture, bits);
}

/** A frame that repeats the one before. `number` counts from 0. */
export function repeatFrame({ columns, rows }: Picture, number: number): Uint8Array {
  const bits = createBits();
  sliceHeader(bits, number, false);
  bits.ue((columns * rows) / 16);
  return unit(UNIT.delta, bits);
}

/** A frame: on its own, or as the change from the cells of the frame before. `number` counts from 0. */
export function encodeFrame(picture: Picture, number: number, before?: Uint8Array): Uint8Array {
  const bits = createBits();
  const isKey = before === undefined;
  sliceHeader(bits, number, isKey);
  const across = picture.columns / 4;
  const raw = new Uint8Array((picture.columns * picture.rows) / 16);
  let skipped = 0;
  for (let at = 0; at < raw.length; at++) {
    const corner = Math.floor(at / across) * 4 * picture.columns + (at % across) * 4;
    if (before !== undefined) {
      if (isSame(picture, before, corner)) {
        skipped += 1;
        continue;
      }
      bits.ue(skipped);
      skipped = 0;
    }
    writeMacroblock(bits, { picture, raw, at, corner, base: isKey ? 0 : 5 });
  }
  if (skipped > 0) bits.ue(skipped);
  return unit(isKey ? UNIT.key : UNIT.delta, bits);
}

function sliceHeader(bits: Bits, number: number, isKey: boolean): void {
  bits.ue(0);
  bits.ue(isKey ? 7 : 5);
  bits.ue(0);
  bits.put(number % 2 ** FRAME_NUMBER_BITS, FRAME_NUMBER_BITS);
  if (isKey) bits.ue(0);
  bits.put(0, isKey ? 2 : 3);
  bits.ue(0);
  bits.ue(1);
}

interface Macroblock {
  readonly picture: Picture;
  /** Which macroblocks of this frame are raw. */
  readonly raw: Uint8Array;
  readonly at: number;
  /** Its first cell. */
  readonly corner: number;
  readonly base: number;
}

function writeMacroblock(bits: Bits, block: Macroblock): void {
  const { picture, raw, at, base } = block;
  const across = picture.columns / 4;
  const source = sourceOf(block);
  if (source === undefined) {
    raw[at] = 1;
    bits.ue(base + TYPE.raw);
    bits.raw(pixelsOf(block));
    return;
  }
  bits.ue(base + TYPE[source]);
  bits.ue(CHROMA_MODE[source]);
  bits.ue(0);
  // "No coefficients", in the code that follows from the neighbours: a raw one counts as full (9.2.1).
  const isBesideRaw = (at % across > 0 && raw[at - 1] === 1) || (at >= across && raw[at - across] === 1);
  if (isBesideRaw) bits.put(0b000011, 6);
  else bits.put(1, 1);
}

/** Where the same pixels stand already; undefined where they have to be written. */
function sourceOf({ picture: { cells, columns }, at, corner }: Macroblock): 'above' | 'left' | undefined {
  const across = columns / 4;
  const copies = (from: (x: number, y: number) => number) => {
    for (let y = 0; y < 4; y++) {
      for (let x = 0; x < 4; x++) if (cells[corner + y * columns + x] !== cells[from(x, y)]) return false;
    }
    return true;
  };
  if (at >= across && copies((x) => corner - columns + x)) return 'above';
  return at % across > 0 && copies((_, y) => corner + y * columns - 1) ? 'left' : undefined;
}

/** The pixels of a macroblock: 16 x 16 of luma, then 8 x 8 of each chroma. */
function pixelsOf({ picture: { cells, columns, palette }, corner }: Macroblock): Uint8Array {
  const bytes = new Uint8Array(RAW_BYTES);
  for (let cell = 0; cell < 16; cell++) {
    const [x, y] = [cell % 4, cell >> 2];
    const color = palette[cells[corner + y * columns + x] ?? 0];
    for (let row = 0; row < 4; row++)
      bytes.fill(color?.y ?? 16, 64 * y + 16 * row + 4 * x, 64 * y + 16 * row + 4 * x + 4);
    for (let row = 0; row < 2; row++) {
      const start = 256 + 16 * y + 8 * row + 2 * x;
      bytes.fill(color?.cb ?? 128, start, start + 2);
      bytes.fill(color?.cr ?? 128, start + 64, start + 66);
    }
  }
  return bytes;
}

function isSame({ cells, columns }: Picture, before: Uint8Array, corner: number): boolean {
  for (let y = 0; y < 4; y++) {
    const start = corner + y * columns;
    for (let cell = start; cell < start + 4; cell++) if (cells[cell] !== before[cell]) return false;
  }
  return true;
}

function createBits(): Bits {
  let bytes = new Uint8Array(4096);
  let length = 0;
  let pending = 0;
  let pendingBits = 0;
  const reserve = (count: number) => {
    if (length + count <= bytes.length) return;
    const larger = new Uint8Array(2 * bytes.length + count);
    larger.set(bytes);
    bytes = larger;
  };
  const put = (value: number, count: number) => {
    pending = ((pending << count) | (value & ((1 << count) - 1))) & 0x7fffffff;
    pendingBits += count;
    reserve(4);
    while (pendingBits >= 8) {
      pendingBits -= 8;
      bytes[length++] = (pending >> pendingBits) & 0xff;
    }
    pending &= (1 << pendingBits) - 1;
  };
  const align = () => put(0, (8 - pendingBits) % 8);
  return {
    put,
    ue(value) {
      const width = 32 - Math.clz32(value + 1);
      put(0, width - 1);
      put(value + 1, width);
    },
    raw(added) {
      align();
      reserve(added.length);
      bytes.set(added, length);
      length += added.length;
    },
    finish() {
      put(1, 1);
      align();
      return bytes.slice(0, length);
    },
  };
}

/** Adds the header, and keeps 0x000000 to 0x000003 out of the payload, where they would be read as a start code. */
function unit(header: number, bits: Bits): Uint8Array {
  const payload = bits.finish();
  const escaped = new Uint8Array(1 + Math.ceil(payload.length * 1.5));
  escaped[0] = header;
  let length = 1;
  let zeros = 0;
  for (const byte of payload) {
    if (zeros === 2 && byte <= 3) {
      escaped[length++] = 3;
      zeros = 0;
    }
    escaped[length++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return escaped.slice(0, length);
}
