import { type BitWriter, createBitWriter } from './bits.js';
import { type Picture, writeMacroblock } from './macroblock.js';

/** Parameters of a stream that its frames share. */
export interface StreamFormat {
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
}

/** The level's number, its largest frame in macroblocks and its most macroblocks a second (H.264, Table A-1). */
const LEVELS = [
  [30, 1620, 40_500],
  [31, 3600, 108_000],
  [40, 8192, 245_760],
  [50, 22_080, 589_824],
  [51, 36_864, 983_040],
  [60, 139_264, 4_177_920],
] as const;

/** The luma quantiser at which macroblocks come back exactly (see macroblock.ts). */
const QUANTISER = 16;
const FRAME_NUMBER_BITS = 8;

/** The sequence parameter set: constrained baseline, frames in order, cropped to the asked size. */
export function sequenceParameters({ width, height, framesPerSecond }: StreamFormat): Uint8Array {
  const bits = createBitWriter();
  const across = Math.ceil(width / 16);
  const down = Math.ceil(height / 16);
  bits.put(66, 8);
  bits.put(0xc0, 8);
  bits.put(levelFor(across * down, framesPerSecond), 8);
  bits.ue(0);
  bits.ue(FRAME_NUMBER_BITS - 4);
  bits.ue(2); // Pictures are shown in the order in which they are decoded.
  bits.ue(1);
  bits.put(0, 1);
  bits.ue(across - 1);
  bits.ue(down - 1);
  bits.put(0b11, 2);
  const right = (across * 16 - width) / 2;
  const bottom = (down * 16 - height) / 2;
  bits.put(right + bottom > 0 ? 1 : 0, 1);
  if (right + bottom > 0) for (const crop of [0, right, 0, bottom]) bits.ue(crop);
  bits.put(1, 1);
  usability(bits, framesPerSecond);
  return unit(0x67, bits);
}

/** Colours are BT.709 in video range, the rate is fixed, nothing is reordered. */
function usability(bits: BitWriter, framesPerSecond: number): void {
  bits.put(0b00, 2);
  bits.put(0b1_101_0_1, 6);
  for (const value of [1, 1, 1]) bits.put(value, 8);
  bits.put(0, 1);
  bits.put(1, 1);
  for (const value of [0, 1, 0, 2 * framesPerSecond]) bits.put(value, 16);
  bits.put(1, 1);
  bits.put(0b000, 3);
  bits.put(0b11, 2);
  for (const value of [0, 0, 10, 10, 0, 1]) bits.ue(value);
}

/** The picture parameter set. */
export function pictureParameters(): Uint8Array {
  const bits = createBitWriter();
  bits.ue(0);
  bits.ue(0);
  bits.put(0b00, 2);
  bits.ue(0);
  bits.ue(0);
  bits.ue(0);
  bits.put(0b000, 3);
  bits.se(QUANTISER - 26);
  bits.se(0);
  bits.se(0);
  bits.put(0b100, 3); // The deblocking filter is switched off per slice: cells keep their edges.
  return unit(0x68, bits);
}

/** A picture on its own; `order` tells neighbouring ones apart. */
export function keyFrame(picture: Picture, order: number): Uint8Array {
  const bits = createBitWriter();
  sliceHeader(bits, 7, 0);
  bits.ue(order % 2);
  bits.put(0b00, 2);
  bits.se(0);
  bits.ue(1);
  for (let at = 0; at < (picture.columns * picture.rows) / 16; at++) {
    writeMacroblock(bits, picture, { ...place(picture, at), base: 0 });
  }
  return unit(0x65, bits);
}

/** What changed since the frame before, within some rows of macroblocks; all else is skipped. */
export function deltaFrame(
  picture: Picture,
  before: Uint8Array,
  { number, from, to }: { number: number; from: number; to: number },
): Uint8Array {
  const bits = createBitWriter();
  sliceHeader(bits, 5, number % 2 ** FRAME_NUMBER_BITS);
  bits.put(0b000, 3);
  bits.se(0);
  bits.ue(1);
  const across = picture.columns / 4;
  let skipped = from * across;
  for (let at = skipped; at < to * across; at++) {
    const where = place(picture, at);
    if (isSame(picture, before, where)) {
      skipped++;
      continue;
    }
    bits.ue(skipped);
    skipped = 0;
    writeMacroblock(bits, picture, { ...where, base: 5 });
  }
  const rest = skipped + (picture.rows / 4 - to) * across;
  if (rest > 0) bits.ue(rest);
  return unit(0x61, bits);
}

function sliceHeader(bits: BitWriter, type: number, number: number): void {
  bits.ue(0);
  bits.ue(type);
  bits.ue(0);
  bits.put(number, FRAME_NUMBER_BITS);
}

function place({ columns }: Picture, at: number): { column: number; row: number } {
  const across = columns / 4;
  return { column: at % across, row: Math.floor(at / across) };
}

function isSame({ cells, columns }: Picture, before: Uint8Array, at: { column: number; row: number }): boolean {
  for (let y = 4 * at.row; y < 4 * at.row + 4; y++) {
    const left = y * columns + 4 * at.column;
    for (let cell = left; cell < left + 4; cell++) if (cells[cell] !== before[cell]) return false;
  }
  return true;
}

function levelFor(frame: number, framesPerSecond: number): number {
  return LEVELS.find(([, size, rate]) => frame <= size && frame * framesPerSecond <= rate)?.[0] ?? 62;
}

/** Adds the header, and keeps 0x000000 to 0x000003 out of the payload, where they would be taken for a start code. */
function unit(header: number, bits: BitWriter): Uint8Array {
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
