import type { BitWriter } from './bits.js';
import { writeLevels } from './cavlc.js';
import type { Color } from './palette.js';

/** A picture of coloured cells of 4 x 4 pixels; columns and rows are multiples of 4, the cells of a macroblock. */
export interface Picture {
  readonly columns: number;
  readonly rows: number;
  /** Palette index of each cell, row by row. */
  readonly cells: Uint8Array;
  readonly palette: readonly Color[];
}

// Order in which a 4x4 block's levels are written (H.264, 8.5.6), as `4 * row + column`.
const ZIGZAG = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
const HADAMARD = [
  [1, 1, 1, 1],
  [1, 1, -1, -1],
  [1, -1, -1, 1],
  [1, -1, 1, -1],
] as const;

/**
 * Writes one Intra16x16 macroblock with DC levels only. At the stream's quantiser (16) a luma difference that is a
 * multiple of 4 and a chroma difference that is even come back exactly, so what was drawn is what is decoded and
 * prediction can be taken from the drawing itself.
 */
export function writeMacroblock(bits: BitWriter, picture: Picture, at: { column: number; row: number; base: number }) {
  const { column, row } = at;
  // 0 copies the pixels above, 1 those on the left, 2 starts from mid-grey.
  const luma = row > 0 ? 0 : column > 0 ? 1 : 2;
  const chroma = row > 0 ? 2 : column > 0 ? 1 : 0;
  const blue = chromaLevels(picture, at, 'cb');
  const red = chromaLevels(picture, at, 'cr');
  const hasChroma = blue.some(Boolean) || red.some(Boolean);
  bits.ue(at.base + 1 + luma + (hasChroma ? 4 : 0));
  bits.ue(chroma);
  bits.se(0);
  writeLevels(bits, lumaLevels(picture, at));
  if (!hasChroma) return;
  writeLevels(bits, blue);
  writeLevels(bits, red);
}

function lumaLevels(picture: Picture, at: { column: number; row: number }): number[] {
  const left = at.column * 4;
  const top = at.row * 4;
  const differences = Array.from({ length: 16 }, (_, block) => {
    const x = left + (block & 3);
    const y = top + (block >> 2);
    const predicted = at.row > 0 ? light(picture, x, top - 1) : at.column > 0 ? light(picture, left - 1, y) : 128;
    return light(picture, x, y) - predicted;
  });
  if (differences.every((difference) => difference === 0)) return differences;
  const transformed = transform(differences);
  return ZIGZAG.map((place) => (transformed[place] ?? 0) / 4);
}

function transform(block: readonly number[]): number[] {
  const rows = HADAMARD.flatMap((line) => [0, 1, 2, 3].map((x) => dot(line, (at) => block[4 * at + x] ?? 0)));
  return [0, 1, 2, 3].flatMap((y) => HADAMARD.map((line) => dot(line, (at) => rows[4 * y + at] ?? 0)));
}

function dot(line: readonly number[], value: (at: number) => number): number {
  return line.reduce((sum, sign, at) => sum + sign * value(at), 0);
}

function chromaLevels(picture: Picture, at: { column: number; row: number }, plane: 'cb' | 'cr'): number[] {
  const left = at.column * 2;
  const top = at.row * 2;
  const [a = 0, b = 0, c = 0, d = 0] = [0, 1, 2, 3].map((block) => {
    const x = left + (block & 1);
    const y = top + (block >> 1);
    const from = { x: at.row > 0 ? x : left - 1, y: at.row > 0 ? top - 1 : y };
    const predicted = at.row > 0 || at.column > 0 ? tint(picture, from, plane) : 128;
    return tint(picture, { x, y }, plane) - predicted;
  });
  return [(a + b + c + d) / 2, (a - b + c - d) / 2, (a + b - c - d) / 2, (a - b - c + d) / 2];
}

function light({ palette, cells, columns }: Picture, x: number, y: number): number {
  return palette[cells[y * columns + x] ?? 0]?.y ?? 0;
}

/** One chroma block covers two by two cells: their mean, kept even. */
function tint({ palette, cells, columns }: Picture, at: { x: number; y: number }, plane: 'cb' | 'cr'): number {
  const first = 2 * at.y * columns + 2 * at.x;
  const of = (cell: number) => palette[cells[cell] ?? 0]?.[plane] ?? 128;
  return 2 * Math.round((of(first) + of(first + 1) + of(first + columns) + of(first + columns + 1)) / 8);
}
