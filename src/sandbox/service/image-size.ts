/** Bytes that are kept of an upload's start: enough for the header of any picture that people really send. */
export const HEAD_BYTES = 256 * 1024;

/** Smallest width of a character's image in pixels (spec: Limits). */
export const LEAST_CHARACTER_WIDTH = 300;

/** Whether an upload's first bytes are those of a supported picture that is wide enough for a character. */
export function isWideEnough(head: Uint8Array): boolean {
  return (imageWidth(head) ?? 0) >= LEAST_CHARACTER_WIDTH;
}

/** The width of a picture in pixels from its first bytes (PNG, JPEG, GIF, WebP, BMP); undefined for anything else. */
function imageWidth(head: Uint8Array): number | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const text = (from: number, length: number) => String.fromCharCode(...head.subarray(from, from + length));
  if (head.length < 26) return undefined;
  if (text(1, 3) === 'PNG') return view.getUint32(16);
  if (text(0, 3) === 'GIF') return view.getUint16(6, true);
  if (text(0, 2) === 'BM') return Math.abs(view.getInt32(18, true));
  if (text(0, 4) === 'RIFF' && text(8, 4) === 'WEBP') return webpWidth(view, text(12, 4));
  if (view.getUint16(0) === 0xffd8) return jpegWidth(view);
  return undefined;
}

function webpWidth(view: DataView, chunk: string): number | undefined {
  if (view.byteLength < 30) return undefined;
  if (chunk === 'VP8X') return 1 + (view.getUint32(24, true) & 0xffffff);
  if (chunk === 'VP8L') return 1 + (view.getUint16(21, true) & 0x3fff);
  return chunk === 'VP8 ' ? view.getUint16(26, true) & 0x3fff : undefined;
}

function jpegWidth(view: DataView): number | undefined {
  for (let at = 2; at + 9 < view.byteLength; at += 2 + view.getUint16(at + 2)) {
    const marker = view.getUint16(at);
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return view.getUint16(at + 7);
    if (marker >> 8 !== 0xff) return undefined;
  }
  return undefined;
}
