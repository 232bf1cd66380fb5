/** A signature: bytes that stand at an offset, given as Latin-1 text. */
type FileSignature = readonly [offset: number, text: string];

/** First match wins; every mark of a line must be there. */
const SIGNATURES: readonly (readonly [mimeType: string, ...marks: FileSignature[]])[] = [
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF8']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['video/x-msvideo', [0, 'RIFF'], [8, 'AVI ']],
  ['audio/flac', [0, 'fLaC']],
  ['audio/mpeg', [0, 'ID3']],
];

/** Major brands of ISO media files, by how they begin; every other brand is MP4 video. */
const BRANDS: readonly (readonly [brand: RegExp, mimeType: string])[] = [
  [/^avi[fs]/, 'image/avif'],
  [/^(hei[cxms]|hev[cxms])/, 'image/heic'],
  [/^m[is]f1/, 'image/heif'],
  [/^qt/, 'video/quicktime'],
  [/^(M4A|M4B|M4P|F4A)/, 'audio/mp4'],
  [/^3g/, 'video/3gpp'],
];

export const SNIFF_BYTES = 4100;

/** The media type that a file's first bytes speak of, for the image, video and audio formats in common use. */
export function sniffMediaType(head: Uint8Array): string | undefined {
  const text = latin1(head);
  const found = SIGNATURES.find(([, ...marks]) => marks.every(([at, mark]) => text.startsWith(mark, at)));
  return found?.[0] ?? isoMedia(text) ?? matroska(text) ?? ogg(text) ?? mpegFrame(head);
}

function isoMedia(text: string): string | undefined {
  if (text.slice(4, 8) !== 'ftyp') return undefined;
  const major = text.slice(8, 12);
  return BRANDS.find(([brand]) => brand.test(major))?.[1] ?? 'video/mp4';
}

function matroska(text: string): string | undefined {
  if (!text.startsWith('\x1aE\xdf\xa3')) return undefined;
  return text.slice(0, 64).includes('webm') ? 'video/webm' : 'video/x-matroska';
}

function ogg(text: string): string | undefined {
  if (!text.startsWith('OggS')) return undefined;
  return text.slice(0, 64).includes('theora') ? 'video/ogg' : 'audio/ogg';
}

/** MP3 and AAC without a tag begin with a frame: eleven set bits, then the layer. */
function mpegFrame([first = 0, second = 0, third = 0]: Uint8Array): string | undefined {
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  const layer = (second >> 1) & 3;
  if (layer === 0) return (second & 0xf0) === 0xf0 ? 'audio/aac' : undefined;
  const badRates = third >> 4 === 15 || ((third >> 2) & 3) === 3;
  return badRates || ((second >> 3) & 3) === 1 ? undefined : 'audio/mpeg';
}

function latin1(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, SNIFF_BYTES), (byte) => String.fromCharCode(byte)).join('');
}

/** How many first bytes {@link imageSize} needs: a JPEG may carry its preview and colour profile before its size. */
export const IMAGE_HEADER_BYTES = 256 * 1024;

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** The size that an image's header gives (PNG, JPEG, GIF, WebP); undefined where it cannot be read. */
export function imageSize(head: Uint8Array): ImageSize | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const is = (at: number, text: string) =>
    head.length >= at + text.length && Array.from(text).every((char, i) => head[at + i] === char.charCodeAt(0));
  try {
    if (is(0, '\x89PNG')) return { width: view.getUint32(16), height: view.getUint32(20) };
    if (is(0, 'GIF8')) return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
    if (is(0, 'RIFF') && is(8, 'WEBP')) return webpSize(view, String.fromCharCode(...head.subarray(12, 16)));
    return is(0, '\xff\xd8') ? jpegSize(view) : undefined;
  } catch (cause) {
    if (cause instanceof RangeError) return undefined; // The header goes on past the bytes at hand.
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

/** Walks the segments up to the frame header. The markers C4, C8 and CC are other things. */
function jpegSize(view: DataView): ImageSize | undefined {
  let at = 2;
  while (view.getUint8(at) === 0xff) {
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}
