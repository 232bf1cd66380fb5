// Variable-length codes of ITU-T H.264, 9.2, as far as DC-only macroblocks need them. Each code is `bits:length`.

/** A code word: its value and how many bits it takes. */
export type Code = readonly [value: number, length: number];

function codes(values: readonly number[], lengths: readonly number[]): readonly Code[] {
  return values.map((value, at) => [value, lengths[at] ?? 0]);
}

/** coeff_token for 0 <= nC < 2 (Table 9-5), at `4 * total + trailingOnes`. */
export const LUMA_TOKENS = codes(
  [
    1, 0, 0, 0, 5, 1, 0, 0, 7, 4, 1, 0, 7, 6, 5, 3, 7, 6, 5, 3, 7, 6, 5, 4, 15, 6, 5, 4, 11, 14, 5, 4, 8, 10, 13, 4, 15,
    14, 9, 4, 11, 10, 13, 12, 15, 14, 9, 12, 11, 10, 13, 8, 15, 1, 9, 12, 11, 14, 13, 8, 7, 10, 9, 12, 4, 6, 5, 8,
  ],
  [
    1, 0, 0, 0, 6, 2, 0, 0, 8, 6, 3, 0, 9, 8, 7, 5, 10, 9, 8, 6, 11, 10, 9, 7, 13, 11, 10, 8, 13, 13, 11, 9, 13, 13, 13,
    10, 14, 14, 13, 11, 14, 14, 14, 13, 15, 15, 14, 14, 15, 15, 15, 14, 16, 15, 15, 15, 16, 16, 16, 15, 16, 16, 16, 16,
    16, 16, 16, 16,
  ],
);

/** coeff_token for chroma DC (Table 9-5, nC = -1), at `4 * total + trailingOnes`. */
export const CHROMA_TOKENS = codes(
  [1, 0, 0, 0, 7, 1, 0, 0, 4, 6, 1, 0, 3, 3, 2, 5, 2, 3, 2, 0],
  [2, 0, 0, 0, 6, 1, 0, 0, 6, 6, 3, 0, 6, 7, 7, 6, 6, 8, 8, 7],
);

/** total_zeros of a 4x4 block (Tables 9-7 and 9-8), by total - 1. */
export const LUMA_ZEROS: readonly (readonly Code[])[] = [
  codes([1, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 1], [1, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9]),
  codes([7, 6, 5, 4, 3, 5, 4, 3, 2, 3, 2, 3, 2, 1, 0], [3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 6, 6]),
  codes([5, 7, 6, 5, 4, 3, 4, 3, 2, 3, 2, 1, 1, 0], [4, 3, 3, 3, 4, 4, 3, 3, 4, 5, 5, 6, 5, 6]),
  codes([3, 7, 5, 4, 6, 5, 4, 3, 3, 2, 2, 1, 0], [5, 3, 4, 4, 3, 3, 3, 4, 3, 4, 5, 5, 5]),
  codes([5, 4, 3, 7, 6, 5, 4, 3, 2, 1, 1, 0], [4, 4, 4, 3, 3, 3, 3, 3, 4, 5, 4, 5]),
  codes([1, 1, 7, 6, 5, 4, 3, 2, 1, 1, 0], [6, 5, 3, 3, 3, 3, 3, 3, 4, 3, 6]),
  codes([1, 1, 5, 4, 3, 3, 2, 1, 1, 0], [6, 5, 3, 3, 3, 2, 3, 4, 3, 6]),
  codes([1, 1, 1, 3, 3, 2, 2, 1, 0], [6, 4, 5, 3, 2, 2, 3, 3, 6]),
  codes([1, 0, 1, 3, 2, 1, 1, 1], [6, 6, 4, 2, 2, 3, 2, 5]),
  codes([1, 0, 1, 3, 2, 1, 1], [5, 5, 3, 2, 2, 2, 4]),
  codes([0, 1, 1, 2, 1, 3], [4, 4, 3, 3, 1, 3]),
  codes([0, 1, 1, 1, 1], [4, 4, 2, 1, 3]),
  codes([0, 1, 1, 1], [3, 3, 1, 2]),
  codes([0, 1, 1], [2, 2, 1]),
  codes([0, 1], [1, 1]),
];

/** total_zeros of chroma DC (Table 9-9), by total - 1. */
export const CHROMA_ZEROS: readonly (readonly Code[])[] = [
  codes([1, 1, 1, 0], [1, 2, 3, 3]),
  codes([1, 1, 0], [1, 2, 2]),
  codes([1, 0], [1, 1]),
];

/** run_before (Table 9-10), by min(zerosLeft, 7) - 1. */
export const RUNS: readonly (readonly Code[])[] = [
  codes([1, 0], [1, 1]),
  codes([1, 1, 0], [1, 2, 2]),
  codes([3, 2, 1, 0], [2, 2, 2, 2]),
  codes([3, 2, 1, 1, 0], [2, 2, 2, 3, 3]),
  codes([3, 2, 3, 2, 1, 0], [2, 2, 3, 3, 3, 3]),
  codes([3, 0, 1, 3, 2, 5, 4], [2, 3, 3, 3, 3, 3, 3]),
  codes([7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1], [3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
];
