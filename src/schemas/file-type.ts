// Detects media types. The library file-type is asynchronous, and takes 20 kB gzipped.
import { canonicalMediaType, mediaTypeEssence, mediaTypeOfName } from './media-type.js';

/** Number of bytes that {@link mediaTypeOfBytes} needs. */
export const FIRST_BYTES = 4_100;

/** A signature: Latin-1 text at an offset. */
type Mark = readonly [offset: number, text: string];

/** File signatures. The first row whose marks all match applies. */
const SIGNATURES: readonly (readonly [mediaType: string, ...marks: Mark[]])[] = [
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF8']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['image/bmp', [0, 'BM'], [6, '\0\0\0\0'], [15, '\0\0\0']],
  ['image/x-canon-cr2', [0, 'II*\0'], [8, 'CR']],
  ['image/tiff', [0, 'II*\0']],
  ['image/tiff', [0, 'MM\0*']],
  ['image/tiff', [0, 'II+\0']],
  ['image/tiff', [0, 'MM\0+']],
  ['image/jxl', [0, '\0\0\0\x0cJXL \r\n\x87\n']],
  ['image/jp2', [0, '\0\0\0\x0cjP  \r\n\x87\n']],
  ['image/vnd.adobe.photoshop', [0, '8BPS\0\x01']],
  ['video/x-msvideo', [0, 'RIFF'], [8, 'AVI ']],
  ['video/mpeg', [0, '\0\0\x01\xba']],
  ['video/mpeg', [0, '\0\0\x01\xb3']],
  ['video/mp2t', [0, 'G'], [188, 'G'], [376, 'G']],
  ['video/mp2t', [4, 'G'], [196, 'G'], [388, 'G']],
  ['video/x-flv', [0, 'FLV\x01']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['audio/wav', [0, 'RF64'], [8, 'WAVE']],
  ['audio/wav', [0, 'BW64'], [8, 'WAVE']],
  ['audio/aiff', [0, 'FORM'], [8, 'AIFF']],
  ['audio/aiff', [0, 'FORM'], [8, 'AIFC']],
  ['audio/flac', [0, 'fLaC']],
  ['audio/aac', [0, 'ADIF']],
  ['application/pdf', [0, '%PDF-']],
  ['application/zip', [0, 'PK\x03\x04']],
  ['application/gzip', [0, '\x1f\x8b\x08']],
];

/** Brands of ISO media files. For an unknown brand, the label applies. */
const BRANDS: readonly (readonly [brand: RegExp, mediaType: string])[] = [
  [/^avi[fs]/, 'image/avif'],
  [/^he(i[cmsx]|v[cmsx])/, 'image/heic'],
  [/^(m[is]f1|miaf)/, 'image/heif'],
  [/^crx /, 'image/x-canon-cr3'],
  [/^qt {2}/, 'video/quicktime'],
  [/^(M4[ABP]|F4[AB]) /, 'audio/mp4'],
  [/^3g2/, 'video/3gpp2'],
  [/^3g/, 'video/3gpp'],
  [/^(iso[2-9a-m]|mp4[12]|mp71|avc1|dash|msdh|cmf[cfs12]|M4V|[fF]4[vVP]|MSNV|ND|XAVC|dby1|piff|mmp4)/, 'video/mp4'],
];

/** Media types with the same first bytes. The label applies if it is one of them. Otherwise, the first one does. */
const SHARED_SIGNATURES: readonly (readonly string[])[] = [
  ['video/mp4', 'audio/mp4'],
  ['video/3gpp', 'audio/3gpp'],
  ['video/webm', 'audio/webm'],
  ['video/x-matroska', 'audio/x-matroska'],
  ['image/tiff', 'image/x-adobe-dng', 'image/x-nikon-nef', 'image/x-sony-arw'],
];

/** Sources of a file's media type, in order of precedence. */
export interface FileDescription {
  /** The caller's `mimeType`. */
  readonly option?: string | undefined;
  /** The first {@link FIRST_BYTES} bytes, or fewer for a shorter file. */
  readonly head?: Uint8Array | undefined;
  /** The type of a Blob, or the Content-Type of a response. */
  readonly type?: string | undefined;
  readonly name?: string | undefined;
}

/** Returns the media type from the first source that has one. */
export function mediaTypeOf({ option, head, type, name }: FileDescription): string | undefined {
  const label = specificType(type) ?? mediaTypeOfName(name ?? '');
  return specificType(option) ?? (head && mediaTypeOfBytes(head, label)) ?? label;
}

/** Returns the media type, unless it's generic. */
function specificType(type: string | undefined): string | undefined {
  const canonical = canonicalMediaType(mediaTypeEssence(type ?? ''));
  return /^$|^(application|binary)\/octet-stream$/.test(canonical) ? undefined : canonical;
}

/** Detects the media type from the first bytes. `label` chooses between types with the same bytes. */
export function mediaTypeOfBytes(head: Uint8Array, label?: string): string | undefined {
  const text = latin1(head);
  const signedType = SIGNATURES.find(([, ...marks]) => marks.every(([at, mark]) => text.startsWith(mark, at)))?.[0];
  const type = signedType ?? isoMedia(text) ?? matroska(text) ?? ogg(text) ?? asf(text) ?? taggedAudio(head, label);
  const sharedTypes = SHARED_SIGNATURES.find(([first]) => first === type);
  if (sharedTypes) return label !== undefined && sharedTypes.includes(label) ? label : type;
  return type ?? mpegFrame(head) ?? dolbyFrame(head) ?? document(text);
}

/** Returns true for a page, JSON, or XML: an error with status 200, or a proxy's sign-in page. */
export function isDocument(mediaType: string): boolean {
  return /^(text\/(html|xml|json)|application\/(xml|xhtml\+xml|(.+\+)?json))$/.test(mediaType);
}

function isoMedia(text: string): string | undefined {
  const box = text.slice(4, 8);
  // QuickTime files from before `ftyp` begin with one of these boxes. Only media data is larger than 16 MB.
  if (box === 'mdat' || (text[0] === '\0' && /^(moov|wide|free|skip|pnot)$/.test(box))) return 'video/quicktime';
  if (box !== 'ftyp' && box !== 'styp') return undefined;
  const size = Array.from(text.slice(0, 4)).reduce((sum, char) => sum * 256 + char.charCodeAt(0), 0);
  const compatible = text.slice(16, Math.max(16, size)).match(/.{4}/gs) ?? [];
  const typeOf = (brand: string) => BRANDS.find(([pattern]) => pattern.test(brand))?.[1];
  const types = [text.slice(8, 12), ...compatible].flatMap((brand) => typeOf(brand) ?? []);
  return types[0] === 'image/heif' && types.includes('image/avif') ? 'image/avif' : types[0];
}

/** A codec ID, such as `V_VP9` or `A_OPUS`. */
const CODEC_ID = /\x86[\x80-\xff]([VA])_/g;
const CLUSTER = '\x1fC\xb6u';

function matroska(text: string): string | undefined {
  if (!text.startsWith('\x1aE\xdf\xa3')) return undefined;
  const name = text.slice(0, 64).includes('webm') ? 'webm' : 'x-matroska';
  const codecs = Array.from(text.matchAll(CODEC_ID), ([, kind]) => kind);
  // All tracks are known once the first cluster begins.
  const isAudio = codecs.length > 0 && !codecs.includes('V') && text.includes(CLUSTER);
  return `${isAudio ? 'audio' : 'video'}/${name}`;
}

const VIDEO_PACKETS = ['\x80theora', '\x01video\0', 'BBCD\0'];

/** Detects video by the first page of each stream. */
function ogg(text: string): string | undefined {
  if (!text.startsWith('OggS')) return undefined;
  const streams = text.split('OggS\0\x02').slice(1);
  const isVideo = streams.some((page) => VIDEO_PACKETS.some((packet) => page.slice(0, 40).includes(packet)));
  return isVideo ? 'video/ogg' : 'audio/ogg';
}

const ASF_VIDEO = '\xc0\xef\x19\xbcM[\xcf\x11\xa8\xfd\0\x80_\\D+';
const ASF_AUDIO = '@\x9ei\xf8M[\xcf\x11\xa8\xfd\0\x80_\\D+';

function asf(text: string): string | undefined {
  if (!text.startsWith('0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel')) return undefined;
  return text.includes(ASF_AUDIO) && !text.includes(ASF_VIDEO) ? 'audio/x-ms-wma' : 'video/x-ms-wmv';
}

/** Detects audio after an ID3 tag. If the tag is longer than `head`, returns the label of an audio type, or MP3. */
function taggedAudio(head: Uint8Array, label: string | undefined): string | undefined {
  if (!latin1(head.subarray(0, 3)).startsWith('ID3')) return undefined;
  const [flags = 0, ...size] = head.subarray(5, 10);
  const end = 10 + size.reduce((sum, byte) => sum * 128 + (byte & 127), 0) + ((flags & 16) === 16 ? 10 : 0);
  const audio = head.subarray(end);
  const isAudio = label?.startsWith('audio/') === true;
  return mediaTypeOfBytes(audio) ?? (audio.length === 0 && isAudio ? label : 'audio/mpeg');
}

/** Detects untagged MP3 and AAC, which start with a frame: eleven set bits, the version, and the layer, but not Layer I. */
function mpegFrame([first = 0, second = 0, third = 0]: Uint8Array): string | undefined {
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  const [version, layer] = [(second >> 3) & 3, (second >> 1) & 3];
  if (layer === 0) return (second & 0xf0) === 0xf0 && ((third >> 2) & 15) < 13 ? 'audio/aac' : undefined;
  const isFrame = layer < 3 && version !== 1 && third >> 4 !== 15 && ((third >> 2) & 3) !== 3;
  return isFrame ? 'audio/mpeg' : undefined;
}

/** Detects Dolby Digital and, from version 11, Dolby Digital Plus. */
function dolbyFrame([first, second, , , rates = 0, version = 0]: Uint8Array): string | undefined {
  if (first !== 0x0b || second !== 0x77) return undefined;
  const id = version >> 3;
  if (id > 10) return id <= 16 ? 'audio/eac3' : undefined;
  return rates >> 6 < 3 && (rates & 63) < 38 ? 'audio/ac3' : undefined;
}

/** The tags by which browsers recognize a page (WHATWG MIME Sniffing, 7.1). */
const HTML = /^<(!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[\s>]/i;

/** Detects a page, XML, or JSON, in UTF-8 or UTF-16. */
function document(raw: string): string | undefined {
  const isWide = /^(\xff\xfe|\xfe\xff)/.test(raw);
  const text = (isWide ? raw.slice(2).replaceAll('\0', '') : raw.replace(/^\xef\xbb\xbf/, '')).trimStart();
  if (/^[{[]\s*(["{}[\]\d-]|true|false|null)/.test(text)) return 'application/json';
  if (!/^<[?!a-z]/i.test(text)) return undefined;
  if (HTML.test(text) || /^<.*<html[\s>]/is.test(text)) return 'text/html';
  return /^(<\?xml.*)?<svg[\s>]/s.test(text) ? 'image/svg+xml' : 'application/xml';
}

function latin1(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, FIRST_BYTES), (byte) => String.fromCharCode(byte)).join('');
}
