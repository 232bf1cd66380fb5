import { GLYPH, hasInk, printable, wrap } from './glyphs.js';
import type { Picture } from './macroblock.js';
import { createPalette, GRADIENT_STEPS, INK } from './palette.js';

/** What is drawn: the job's model, the first words of its prompt, and a mark that moves. */
export interface SceneSpec {
  readonly width: number;
  readonly height: number;
  readonly seed: number;
  readonly label: string;
  readonly prompt: string;
}

/** A drawing whose lower band changes with time; the rest stands still. */
export interface Scene {
  readonly picture: Picture;
  /** Rows of macroblocks that change from one moment to the next. */
  readonly band: { readonly from: number; readonly to: number };
  /** Draws the band for a moment: `along` from 0 to 1, and a line of text. */
  drawMoment(along: number, caption: string): void;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Side of a cell in pixels. */
export const CELL = 4;

/** Draws everything but the moving band. */
export function createScene(spec: SceneSpec): Scene {
  const columns = Math.ceil(spec.width / 16) * 4;
  const rows = Math.ceil(spec.height / 16) * 4;
  const picture: Picture = { columns, rows, cells: new Uint8Array(columns * rows), palette: createPalette(spec.seed) };
  const visible = { width: Math.floor(spec.width / CELL), height: Math.floor(spec.height / CELL) };
  const unit = Math.max(1, Math.floor(Math.min(visible.width, visible.height) / 110));
  const margin = 7 * unit;
  const inner = { x: margin, width: visible.width - 2 * margin };
  drawBackground(picture);

  const bandTop = Math.max(0, Math.floor((visible.height - margin - 28 * unit) / 4) * 4);
  const label = printable(spec.label);
  const labelScale = Math.max(1, Math.min(3 * unit, Math.floor(inner.width / (GLYPH.advance * label.length || 1))));
  drawText(picture, { text: label, x: margin, y: margin, scale: labelScale, ink: INK.text });
  const promptTop = margin + labelScale * GLYPH.line + 2 * unit;
  const lines = Math.max(1, Math.floor((bandTop - promptTop) / (GLYPH.line * unit)));
  const perLine = Math.max(4, Math.floor(inner.width / (GLYPH.advance * unit)));
  wrap(printable(spec.prompt), perLine, lines).forEach((text, line) => {
    const y = promptTop + line * GLYPH.line * unit;
    drawText(picture, { text, x: margin, y, scale: unit, ink: INK.dim });
  });

  const still = picture.cells.slice(bandTop * columns);
  return {
    picture,
    band: { from: bandTop / 4, to: rows / 4 },
    drawMoment(along, caption) {
      picture.cells.set(still, bandTop * columns);
      drawMark(picture, { x: inner.x, y: bandTop, width: inner.width, height: 16 * unit }, along);
      const y = bandTop + 20 * unit;
      drawText(picture, { text: caption, x: margin, y, scale: unit, ink: INK.text });
    },
  };
}

function drawBackground({ columns, rows, cells }: Picture): void {
  for (let x = 0; x < columns; x++) cells[x] = Math.floor((x * GRADIENT_STEPS) / columns);
  for (let y = 1; y < rows; y++) cells.copyWithin(y * columns, 0, columns);
}

/** A track with a disc on it. */
function drawMark(picture: Picture, box: Box, along: number): void {
  const radius = box.height / 2;
  const middle = box.y + radius;
  const thick = Math.max(1, Math.round(box.height / 8));
  const centre = box.x + radius + Math.round(along * Math.max(0, box.width - box.height));
  const line = { x: box.x, y: Math.round(middle - thick / 2), width: box.width, height: thick };
  fill(picture, line, INK.track);
  fill(picture, { ...line, width: centre - box.x }, INK.mark);
  for (let y = 0; y < box.height; y++) {
    const reach = Math.round(Math.sqrt(radius ** 2 - (y + 0.5 - radius) ** 2));
    fill(picture, { x: centre - reach, y: box.y + y, width: 2 * reach, height: 1 }, INK.mark);
  }
}

function drawText(
  picture: Picture,
  { text, x, y, scale, ink }: { text: string; x: number; y: number; scale: number; ink: number },
): void {
  [...text].forEach((char, at) => {
    for (let dot = 0; dot < GLYPH.width * GLYPH.height; dot++) {
      const column = dot % GLYPH.width;
      const row = Math.floor(dot / GLYPH.width);
      if (!hasInk(char, column, row)) continue;
      const left = x + (at * GLYPH.advance + column) * scale;
      fill(picture, { x: left, y: y + row * scale, width: scale, height: scale }, ink);
    }
  });
}

function fill({ columns, rows, cells }: Picture, box: Box, ink: number): void {
  const from = Math.max(0, box.x);
  const to = Math.min(columns, box.x + box.width);
  if (to <= from) return;
  for (let y = Math.max(0, box.y); y < Math.min(rows, box.y + box.height); y++) {
    cells.fill(ink, y * columns + from, y * columns + to);
  }
}
