/** A colour of the palette: BT.709 video range, luma a multiple of 4 and chroma even (see macroblock.ts). */
export interface Color {
  readonly y: number;
  readonly cb: number;
  readonly cr: number;
}

/** How many palette entries the background's gradient takes; the named colours follow it. */
export const GRADIENT_STEPS = 48;
/** Palette indices beside the gradient. */
export const INK = {
  text: GRADIENT_STEPS,
  dim: GRADIENT_STEPS + 1,
  mark: GRADIENT_STEPS + 2,
  track: GRADIENT_STEPS + 3,
};

/** The colours of one job: the seed picks the hues, so that two jobs are told apart at a glance. */
export function createPalette(seed: number): readonly Color[] {
  const hue = spread(seed);
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

/** The same colour as red, green and blue. */
export function toRgb({ y, cb, cr }: Color): [number, number, number] {
  const luma = (y - 16) / 219;
  const blue = (cb - 128) / 112;
  const red = (cr - 128) / 112;
  return [luma + 0.7874 * red, luma - 0.0937 * blue - 0.2341 * red, luma + 0.9278 * blue].map((part) =>
    Math.round(255 * Math.min(1, Math.max(0, part))),
  ) as [number, number, number];
}

/** A hue in [0, 1) by the golden ratio: neighbouring seeds lie far apart. */
function spread(seed: number): number {
  return (((seed % 100_003) * 0.618_033_988_749_895) % 1) + 1;
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
    y: 4 * Math.round((16 + 219 * luma) / 4),
    cb: 2 * Math.round((128 + (112 * (b - luma)) / 0.9278) / 2),
    cr: 2 * Math.round((128 + (112 * (r - luma)) / 0.7874) / 2),
  };
}
