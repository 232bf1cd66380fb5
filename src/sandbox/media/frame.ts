// One H.264 key frame of vertical bands. A macroblock is raw pixels where a band begins, and otherwise repeats the one on its
// left or above it: what was drawn is exactly what is decoded, and no transform or code table is needed.

/** A colour in BT.709, video range. */
export interface Color {
  readonly y: number;
  readonly cb: number;
  readonly cr: number;
}

/** A level's number, its largest frame in macroblocks (H.264, Table A-1). */
const LEVELS = [
  [30, 1620],
  [31, 3600],
  [40, 8192],
  [50, 22_080],
  [51, 36_864],
] as const;
const HIGHEST_LEVEL = 60;
const UNIT = { sequence: 0x67, picture: 0x68, key: 0x65 } as const;
/** The pixels of a macroblock: 16 x 16 of luma, 8 x 8 of each chroma. */
const RAW_BYTES = 256 + 64 + 64;

/** The sequence parameter set: constrained baseline, cropped to the size. */
export function sequenceParameters(width: number, height: number): Uint8Array {
  const bits = new Bits();
  const across = Math.ceil(width / 16);
  const down = Math.ceil(height / 16);
  const level = LEVELS.find(([, size]) => across * down <= size)?.[0] ?? HIGHEST_LEVEL;
  for (const value of [66, 0xc0, level]) bits.put(value, 8);
  for (const value of [0, 4, 2, 1]) bits.ue(value);
  bits.put(0, 1);
  bits.ue(across - 1);
  bits.ue(down - 1);
  bits.put(0b111, 3);
  for (const side of [0, (across * 16 - width) / 2, 0, (down * 16 - height) / 2]) bits.ue(side);
  // Usability: BT.709 in video range.
  bits.put(0b1_00_1_101_0_1, 9);
  for (const value of [1, 1, 1]) bits.put(value, 8);
  bits.put(0b0_0_0_0_0_0, 6);
  return bits.unit(UNIT.sequence);
}

/** The picture parameter set. */
export function pictureParameters(): Uint8Array {
  const bits = new Bits();
  for (const value of [0, 0]) bits.ue(value);
  bits.put(0b00, 2);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b000, 3);
  for (const value of [0, 0, 0]) bits.ue(value);
  bits.put(0b100, 3); // The slice switches the deblocking filter off.
  return bits.unit(UNIT.picture);
}

/** A frame in which each column of macroblocks has one colour. Two frames in a row differ in `id`, which is 1 or 2. */
export function keyFrame(columns: readonly Color[], rows: number, id: number): Uint8Array {
  const bits = new Bits();
  for (const value of [0, 7, 0]) bits.ue(value);
  bits.put(0, 8);
  bits.ue(id);
  bits.put(0, 2);
  for (const value of [0, 1]) bits.ue(value);
  const isRaw = (at: number) => columns[at] !== undefined && columns[at] !== columns[at - 1];
  for (let at = 0; at < columns.length * rows; at++) {
    const color = columns[at];
    if (color !== undefined && isRaw(at)) {
      bits.ue(25);
      bits.raw(rawPixels(color));
      continue;
    }
    const source =
      at < columns.length ? { luma: 2, chroma: 1, at: at - 1 } : { luma: 1, chroma: 2, at: at - columns.length };
    for (const value of [source.luma, source.chroma, 0]) bits.ue(value);
    // "No coefficients", in the code that follows from the neighbours: a raw macroblock counts as full (9.2.1).
    if (isRaw(source.at)) bits.put(0b000011, 6);
    else bits.put(1, 1);
  }
  return bits.unit(UNIT.key);
}

function rawPixels({ y, cb, cr }: Color): Uint8Array {
  const bytes = new Uint8Array(RAW_BYTES);
  bytes.fill(y, 0, 256);
  bytes.fill(cb, 256, 320);
  bytes.fill(cr, 320);
  return bytes;
}

/** Writes bits, the most significant first. */
class Bits {
  readonly #bytes: number[] = [];
  #pending = 0;
  #count = 0;

  /** Writes the lowest `count` bits of `value`. */
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

  /** Unsigned Exp-Golomb code. */
  ue(value: number): void {
    const length = 32 - Math.clz32(value + 1);
    this.put(0, length - 1);
    this.put(value + 1, length);
  }

  /** Fills up with zeros to the next byte and writes whole bytes. */
  raw(bytes: Uint8Array): void {
    while (this.#count > 0) this.put(0, 1);
    for (const byte of bytes) this.#bytes.push(byte);
  }

  /** Closes with the stop bit, and gives the unit: no three bytes in it look like a start code. */
  unit(type: number): Uint8Array {
    this.put(1, 1);
    while (this.#count > 0) this.put(0, 1);
    const escaped = [type];
    let zeros = 0;
    for (const byte of this.#bytes) {
      if (zeros >= 2 && byte <= 3) {
        escaped.push(3);
        zeros = 0;
      }
      escaped.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
    return Uint8Array.from(escaped);
  }
}
