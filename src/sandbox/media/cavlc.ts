import type { BitWriter } from './bits.js';
import { CHROMA_TOKENS, CHROMA_ZEROS, type Code, LUMA_TOKENS, LUMA_ZEROS, RUNS } from './cavlc-tables.js';

/** Writes one block of transform levels in scan order: 16 of luma DC, or 4 of chroma DC (H.264, 7.3.5.3.2). */
export function writeLevels(bits: BitWriter, levels: ArrayLike<number>): void {
  const isChroma = levels.length === 4;
  const { values, runs, zeros } = runLengths(levels);
  const ones = trailingOnes(values);
  write(bits, (isChroma ? CHROMA_TOKENS : LUMA_TOKENS)[4 * values.length + ones]);
  if (values.length === 0) return;
  for (const value of values.slice(0, ones)) bits.put(value < 0 ? 1 : 0, 1);
  writeValues(bits, values, ones);
  if (values.length < levels.length) {
    write(bits, (isChroma ? CHROMA_ZEROS : LUMA_ZEROS)[values.length - 1]?.[zeros]);
  }
  let left = zeros;
  for (const run of runs.slice(0, -1)) {
    if (left === 0) break;
    write(bits, RUNS[Math.min(left, 7) - 1]?.[run]);
    left -= run;
  }
}

/** The non-zero levels from the highest frequency down, the zeros before each, and their sum. */
function runLengths(levels: ArrayLike<number>): { values: number[]; runs: number[]; zeros: number } {
  const values: number[] = [];
  const runs: number[] = [];
  let run = 0;
  let zeros = 0;
  for (let at = 0; at < levels.length; at++) {
    const level = levels[at] ?? 0;
    if (level === 0) {
      run++;
      continue;
    }
    values.unshift(level);
    runs.unshift(run);
    zeros += run;
    run = 0;
  }
  return { values, runs, zeros };
}

function trailingOnes(values: readonly number[]): number {
  const first = values.findIndex((value) => Math.abs(value) !== 1);
  return Math.min(3, first === -1 ? values.length : first);
}

function writeValues(bits: BitWriter, values: readonly number[], ones: number): void {
  let suffixLength = values.length > 10 && ones < 3 ? 1 : 0;
  for (let at = ones; at < values.length; at++) {
    const value = values[at] ?? 0;
    // With fewer than three trailing ones the first level cannot be one of them, which saves a step.
    const code = (value > 0 ? 2 * value - 2 : -2 * value - 1) - (at === ones && ones < 3 ? 2 : 0);
    writeValue(bits, code, suffixLength);
    if (suffixLength === 0) suffixLength = 1;
    if (Math.abs(value) > 3 << (suffixLength - 1) && suffixLength < 6) suffixLength++;
  }
}

function writeValue(bits: BitWriter, code: number, suffixLength: number): void {
  const longest = suffixLength === 0 ? 30 : 15 << suffixLength;
  if (code >= longest) {
    bits.put(1, 16);
    bits.put(code - longest, 12);
  } else if (suffixLength === 0 && code >= 14) {
    bits.put(1, 15);
    bits.put(code - 14, 4);
  } else {
    bits.put(1, (code >> suffixLength) + 1);
    bits.put(code, suffixLength);
  }
}

function write(bits: BitWriter, code: Code | undefined): void {
  if (code) bits.put(code[0], code[1]);
}
