/** Number of bytes that {@link imageSize} needs. In a JPEG, a preview and a color profile can precede the size. */
export const IMAGE_HEADER_BYTES = 256 * 1024;

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Returns the size from the header of a PNG, JPEG, GIF, or WebP, without EXIF rotation. Undefined if it can't be read. */
export function imageSize(head: Uint8Array): ImageSize | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const hasBytes = (offset: number, chars: string) =>
    head.length >= offset + chars.length &&
    Array.from(chars).every((char, index) => head[offset + index] === char.charCodeAt(0));
  try {
    if (hasBytes(0, '\x89PNG')) return { width: view.getUint32(16), height: view.getUint32(20) };
    if (hasBytes(0, 'GIF8')) return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
    if (hasBytes(0, 'RIFF') && hasBytes(8, 'WEBP'))
      return webpSize(view, String.fromCharCode(...head.subarray(12, 16)));
    return hasBytes(0, '\xff\xd8') ? jpegSize(view) : undefined;
  } catch (cause) {
    if (cause instanceof RangeError) return undefined; // The header is longer than `head`.
    throw cause;
  }
}

function webpSize(view: DataView, chunk: string): ImageSize | undefined {
  if (chunk === 'VP8X') {
    return { width: 1 + (view.getUint32(24, true) & 0xffffff), height: 1 + (view.getUint32(26, true) >>> 8) };
  }
  if (chunk === 'VP8L') {
    const bits = view.getUint32(21, true);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (chunk !== 'VP8 ') return undefined;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

/** Skips segments up to the frame header. C4, C8, and CC are in the range of frame markers, but aren't frames. */
function jpegSize(view: DataView): ImageSize | undefined {
  let offset = 2;
  while (view.getUint8(offset) === 0xff) {
    const marker = view.getUint8(offset + 1);
    if (marker === 0xff) {
      offset += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(offset + 7), height: view.getUint16(offset + 5) };
    offset += 2 + view.getUint16(offset + 2);
  }
  return undefined;
}
