/** Width and height of a glyph in dots, the step to the next one, and the step to the next line. */
export const GLYPH = { width: 5, height: 7, advance: 6, line: 10 };

// Five columns a glyph from U+0020 to U+005F, the lowest bit on top.
const FONT = [
  '0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300 001c224100 0041221c00',
  '2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402 3e5149453e 00427f4000 7249494946 2141494d33',
  '1814127f10 2745454539 3c4a494931 4121110907 3649494936 464949291e 0000140000 0040340000 0008142241 1414141414',
  '0041221408 0201590906 3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173',
  '7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e 7f09090906 3e4151215e',
  '7f09192946 2649494932 03017f0103 3f4040403f 1f2040201f 3f4038403f 6314081463 0304780403 6159494d43 007f414141',
  '0204081020 004141417f 0402010204 4040404040',
]
  .join(' ')
  .split(' ');

/** The glyph of a character that the font does not have. */
const BOX = '7f4141417f';

/** The text in the font's characters: capitals without accents, and one space for any white space. */
export function printable(text: string): string {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').replace(/\s+/gu, ' ').trim();
  return [...plain.toUpperCase()].map((char) => (char >= ' ' && char <= '_' ? char : '\u25af')).join('');
}

/** Whether the glyph of `char` has ink at this column and row. */
export function hasInk(char: string, column: number, row: number): boolean {
  const glyph = FONT[char.charCodeAt(0) - 32] ?? BOX;
  return ((Number.parseInt(glyph.slice(2 * column, 2 * column + 2), 16) >> row) & 1) === 1;
}

/** Breaks `text` into at most `lines` lines of `columns` characters; what does not fit ends in three dots. */
export function wrap(text: string, columns: number, lines: number): string[] {
  const result: string[] = [];
  let rest = text;
  while (rest !== '' && result.length < lines) {
    const space = rest.lastIndexOf(' ', columns);
    const end = rest.length <= columns ? rest.length : space > 0 ? space : columns;
    result.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  const last = result.at(-1);
  if (rest !== '' && last !== undefined) result[result.length - 1] = `${last.slice(0, Math.max(0, columns - 3))}...`;
  return result;
}
