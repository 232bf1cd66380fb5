/** How many first bytes {@link imageWidth} wants: a JPEG may carry its preview and colour profile before its size. */
export const WIDTH_BYTES = 256 * 1024;

/** The width in pixels that an image's header gives (PNG, JPEG, GIF, WebP, BMP); undefined where it cannot be told. */
export function imageWidth(head: Uint8Array): number | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const is = (at: number, text: string) =>
    head.length >= at + text.length && Array.from(text).every((char, i) => head[at + i] === char.charCodeAt(0));
  try {
    if (is(0, '\x89PNG')) return view.getUint32(16);
    if (is(0, 'GIF8')) return view.getUint16(6, true);
    if (is(0, 'BM')) return view.getInt32(18, true);
    if (is(0, 'RIFF') && is(8, 'WEBP')) return webpWidth(view, String.fromCharCode(...head.subarray(12, 16)));
    return is(0, '\xff\xd8') ? jpegWidth(view) : undefined;
  } catch (cause) {
    if (cause instanceof RangeError) return undefined; // The header goes on past the bytes at hand.
    throw cause;
  }
}

function webpWidth(view: DataView, chunk: string): number | undefined {
  if (chunk === 'VP8X') return 1 + (view.getUint32(24, true) & 0xffffff);
  if (chunk === 'VP8L') return 1 + (view.getUint16(21, true) & 0x3fff);
  return chunk === 'VP8 ' ? view.getUint16(26, true) & 0x3fff : undefined;
}

/** Walks the segments up to the frame header; markers C4, C8 and CC are other things. */
function jpegWidth(view: DataView): number | undefined {
  let at = 2;
  while (view.getUint8(at) === 0xff) {
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker % 4 !== 0) return view.getUint16(at + 7);
    if (marker === 0xc0) return view.getUint16(at + 7);
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}
