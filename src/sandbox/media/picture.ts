import { GLYPH, hasInk, printable, wrap } from './glyphs.js';

/** A colour in BT.709, video range. */
export interface Color {
  readonly y: number;
  readonly cb: number;
  readonly cr: number;
}

/** A picture of coloured cells; columns and rows are multiples of 4. */
export interface Picture {
  readonly columns: number;
  readonly rows: number;
  /** The palette index of each cell, row by row. */
  readonly cells: Uint8Array;
  readonly palette: readonly Color[];
}

/** What is drawn: the job's model and its size, the first words of its prompt, and a bar that grows. */
export interface SceneSpec {
  readonly width: number;
  readonly height: number;
  readonly seed: number;
  readonly label: string;
  readonly prompt: string;
  /** A line of facts below the label. */
  readonly facts: string;
  /** Cells per dot of the smaller text. */
  readonly textScale: number;
}

/** A picture whose bar can be redrawn. */
export interface Scene {
  readonly picture: Picture;
  /** Draws the bar, from 0 (empty) to 1 (full). */
  drawBar(share: number): void;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The side of a cell in pixels. Sixteen cells are a macroblock of a video. */
export const CELL = 4;
const GRADIENT_STEPS = 48;
const INK = { text: GRADIENT_STEPS, dim: GRADIENT_STEPS + 1, bar: GRADIENT_STEPS + 2, track: GRADIENT_STEPS + 3 };
/** As much of a prompt as says which job it is: text is what a file's size is made of. */
const MOST_LINES = 6;
const MOST_COLUMNS = 48;

/** Draws everything but the bar. */
export function createScene({ width, height, seed, label, prompt, facts, textScale }: SceneSpec): Scene {
  const columns = Math.ceil(width / 16) * 4;
  const rows = Math.ceil(height / 16) * 4;
  const picture: Picture = { columns, rows, cells: new Uint8Array(columns * rows), palette: createPalette(seed) };
  const visible = { width: Math.floor(width / CELL), height: Math.floor(height / CELL) };
  for (let x = 0; x < columns; x++) picture.cells[x] = Math.floor((x * GRADIENT_STEPS) / columns);
  for (let y = 1; y < rows; y++) picture.cells.copyWithin(y * columns, 0, columns);

  const margin = 8 * Math.max(1, Math.floor(Math.min(visible.width, visible.height) / 110));
  const inner = visible.width - 2 * margin;
  const title = printable(label).slice(0, MOST_COLUMNS);
  const fitting = Math.floor(inner / (GLYPH.advance * title.length || 1));
  const titleScale = Math.max(1, Math.min(2 * textScale, fitting));
  drawText(picture, { text: title, x: margin, y: margin, scale: titleScale, ink: INK.text });
  const line = GLYPH.line * textScale;
  const top = margin + titleScale * GLYPH.line;
  drawText(picture, { text: printable(facts), x: margin, y: top, scale: textScale, ink: INK.dim });

  const barTop = 4 * Math.max(0, Math.floor((visible.height - 2 * margin) / 4));
  const promptTop = top + Math.round(1.6 * line);
  const lines = Math.min(MOST_LINES, Math.max(1, Math.floor((barTop - promptTop) / line)));
  const perLine = Math.min(MOST_COLUMNS, Math.max(4, Math.floor(inner / (GLYPH.advance * textScale))));
  for (const [at, text] of wrap(printable(prompt), perLine, lines).entries()) {
    drawText(picture, { text, x: margin, y: promptTop + at * line, scale: textScale, ink: INK.text });
  }
  const bar = { x: margin, y: barTop, width: inner, height: Math.max(4, margin / 2) };
  return {
    picture,
    drawBar(share) {
      fill(picture, bar, INK.track);
      fill(picture, { ...bar, width: Math.round(inner * share) }, INK.bar);
    },
  };
}

/** The same colour as red, green and blue. */
export function toRgb({ y, cb, cr }: Color): [number, number, number] {
  const luma = (y - 16) / 219;
  const blue = (cb - 128) / 112;
  const red = (cr - 128) / 112;
  return [luma + 0.7874 * red, luma - 0.0937 * blue - 0.2341 * red, luma + 0.9278 * blue].map((part) =>
    Math.round(255 * Math.min(1, Math.max(0, part))),
  ) as [number, number, number];
}

function drawText(
  picture: Picture,
  { text, x, y, scale, ink }: { text: string; x: number; y: number; scale: number; ink: number },
): void {
  for (const [at, char] of [...text].entries()) {
    for (let dot = 0; dot < GLYPH.width * GLYPH.height; dot++) {
      const column = dot % GLYPH.width;
      const row = Math.floor(dot / GLYPH.width);
      if (!hasInk(char, column, row)) continue;
      const left = x + (at * GLYPH.advance + column) * scale;
      fill(picture, { x: left, y: y + row * scale, width: scale, height: scale }, ink);
    }
  }
}

function fill({ columns, rows, cells }: Picture, box: Box, ink: number): void {
  const from = Math.max(0, box.x);
  const to = Math.min(columns, box.x + box.width);
  if (to <= from) return;
  for (let y = Math.max(0, box.y); y < Math.min(rows, box.y + box.height); y++) {
    cells.fill(ink, y * columns + from, y * columns + to);
  }
}

/** The colours of one job: the seed picks the hue, so that two jobs are told apart at a glance. */
function createPalette(seed: number): Color[] {
  // By the golden ratio, neighbouring seeds have hues far apart.
  const hue = (((seed % 100_003) * 0.618_033_988_749_895) % 1) + 1;
  const gradient = Array.from({ length: GRADIENT_STEPS }, (_, step) => {
    const along = step / (GRADIENT_STEPS - 1);
    return fromHsl({ hue: hue + along / 5, saturation: 0.55, lightness: 0.2 + 0.14 * along });
  });
  return [
    ...gradient,
    fromHsl({ hue, saturation: 0, lightness: 0.97 }),
    fromHsl({ hue: hue + 0.1, saturation: 0.35, lightness: 0.8 }),
    fromHsl({ hue: hue + 0.5, saturation: 0.9, lightness: 0.62 }),
    fromHsl({ hue: hue + 0.1, saturation: 0.4, lightness: 0.13 }),
  ];
}

function fromHsl(color: { hue: number; saturation: number; lightness: number }): Color {
  const range = color.saturation * Math.min(color.lightness, 1 - color.lightness);
  const part = (offset: number) => {
    const at = (offset + color.hue * 12) % 12;
    return color.lightness - range * Math.max(-1, Math.min(at - 3, 9 - at, 1));
  };
  const [r, g, b] = [part(0), part(8), part(4)];
  const luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return {
    y: Math.round(16 + 219 * luma),
    cb: Math.round(128 + (112 * (b - luma)) / 0.9278),
    cr: Math.round(128 + (112 * (r - luma)) / 0.7874),
  };
}
