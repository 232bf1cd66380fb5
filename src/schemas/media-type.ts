/** The service's upload type. Only `VIDEO` is documented. */
export type UploadType = 'IMAGE' | 'VIDEO' | 'AUDIO' | (string & {});

/** File extensions by media type. Saved files use the first one. */
const EXTENSIONS = {
  'image/png': ['png'],
  'image/jpeg': ['jpg', 'jpeg', 'jfif'],
  'image/gif': ['gif'],
  'image/webp': ['webp'],
  'image/avif': ['avif'],
  'image/heic': ['heic'],
  'image/heif': ['heif'],
  'image/bmp': ['bmp'],
  'image/tiff': ['tiff', 'tif'],
  'image/svg+xml': ['svg'],
  'image/jxl': ['jxl'],
  'image/jp2': ['jp2'],
  'image/x-canon-cr2': ['cr2'],
  'image/x-canon-cr3': ['cr3'],
  'image/vnd.adobe.photoshop': ['psd'],
  'video/mp4': ['mp4', 'm4v'],
  'video/quicktime': ['mov', 'qt'],
  'video/webm': ['webm'],
  'video/x-matroska': ['mkv'],
  'video/x-msvideo': ['avi'],
  'video/mpeg': ['mpg', 'mpeg', 'vob'],
  'video/mp2t': ['ts', 'mts', 'm2ts'],
  'video/3gpp': ['3gp'],
  'video/3gpp2': ['3g2'],
  'video/ogg': ['ogv', 'ogm'],
  'video/x-flv': ['flv'],
  'video/x-ms-wmv': ['wmv', 'asf'],
  'audio/mpeg': ['mp3'],
  'audio/wav': ['wav'],
  'audio/ogg': ['ogg', 'oga', 'opus'],
  'audio/flac': ['flac'],
  'audio/aac': ['aac'],
  'audio/mp4': ['m4a', 'm4b', 'f4a'],
  'audio/webm': ['weba'],
  'audio/x-matroska': ['mka'],
  'audio/aiff': ['aiff', 'aif', 'aifc'],
  'audio/ac3': ['ac3'],
  'audio/eac3': ['eac3'],
  'audio/x-ms-wma': ['wma'],
  'application/json': ['json'],
  'application/pdf': ['pdf'],
  'application/zip': ['zip'],
} as const satisfies Readonly<Record<string, readonly [string, ...string[]]>>;

/** Extensions of saved files. */
export const USUAL_EXTENSIONS: readonly string[] = Object.values(EXTENSIONS).map(([extension]) => `.${extension}`);

/** Other names of media types. */
const ALIASES: Readonly<Record<string, keyof typeof EXTENSIONS>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'image/x-ms-bmp': 'image/bmp',
  'video/x-m4v': 'video/mp4',
  'application/mp4': 'video/mp4',
  'video/matroska': 'video/x-matroska',
  'video/avi': 'video/x-msvideo',
  'video/vnd.avi': 'video/x-msvideo',
  'audio/mp3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'application/ogg': 'audio/ogg',
  'audio/opus': 'audio/ogg',
  'audio/x-flac': 'audio/flac',
  'audio/x-aac': 'audio/aac',
  'audio/x-m4a': 'audio/mp4',
  'audio/m4a': 'audio/mp4',
  'audio/x-aiff': 'audio/aiff',
  'audio/x-aifc': 'audio/aiff',
  'audio/vnd.dolby.dd-raw': 'audio/ac3',
  'video/x-ms-asf': 'video/x-ms-wmv',
  'video/x-ogm': 'video/ogg',
};

/** Returns the media type without parameters, in lower case: `video/mp4` for `Video/MP4; codecs=avc1`. */
export function mediaTypeEssence(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** Returns the canonical name of a media type: `image/jpeg` for `image/jpg`. */
export function canonicalMediaType(essence: string): string {
  return (Object.hasOwn(ALIASES, essence) ? ALIASES[essence] : undefined) ?? essence;
}

/** Returns the extensions of a media type, most common first. Empty for an unknown type. */
export function extensionsOf(contentType: string): readonly string[] {
  const type = canonicalMediaType(mediaTypeEssence(contentType));
  const table: Readonly<Record<string, readonly string[]>> = EXTENSIONS;
  return (Object.hasOwn(table, type) && table[type]) || [];
}

/** Returns the media type for a file name's extension. */
export function mediaTypeOfName(name: string): string | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase();
  if (extension === undefined) return undefined;
  return Object.entries<readonly string[]>(EXTENSIONS).find(([, extensions]) => extensions.includes(extension))?.[0];
}

/** Returns the upload type for a media type: IMAGE, VIDEO, or AUDIO. */
export function uploadTypeOf(contentType: string): UploadType | undefined {
  const family = canonicalMediaType(mediaTypeEssence(contentType)).split('/', 1)[0];
  return family === 'image' || family === 'video' || family === 'audio' ? family.toUpperCase() : undefined;
}

/** Maximum length of a file name in bytes of UTF-8. */
const MAX_NAME_BYTES = 80;
/** Maximum length of an extension. */
const MAX_EXTENSION = 16;
/** Number of last characters of a name that are used, because untrusted names may have any length. */
const NAME_TAIL = 1_000;

/** Returns true if Windows reserves the name for a device. */
function isDeviceName(name: string): boolean {
  return /^(con|prn|aux|nul|(com|lpt)[\d¹²³])(\.|$)/i.test(name);
}

/**
 * Reduces a name or path to a safe file name: the last segment, letters and digits of any script, `.`, `_`, and `-`, no
 * leading dot, at most 80 bytes. Adds the extension of the media type if the name has none.
 */
export function safeFileName(name: string | undefined, mimeType: string): string {
  const tail = (name ?? '').slice(-NAME_TAIL);
  const lastSegment = tail.split(/[/\\]/).findLast((segment) => segment.trim() !== '') ?? '';
  const safeName = lastSegment.normalize('NFC').replace(/[^\p{L}\p{M}\p{N}._-]+/gu, '_');
  const trimmedName = safeName.replace(/^[._]+|(?<![._])[._]+$/g, '');
  const bareName = isDeviceName(trimmedName) ? `_${trimmedName}` : trimmedName;
  const parts = new RegExp(`^(.+)\\.(\\w{1,${MAX_EXTENSION}})$`, 'u').exec(bareName);
  const [stem, extension] = parts ? [parts[1], parts[2]] : [bareName, extensionsOf(mimeType)[0]];
  const suffix = extension === undefined ? '' : `.${extension}`;
  return `${truncateBytes(stem || 'upload', MAX_NAME_BYTES - suffix.length)}${suffix}`;
}

/** Truncates text to a number of UTF-8 bytes, at a character boundary. */
function truncateBytes(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text).subarray(0, maxBytes);
  return new TextDecoder().decode(bytes).replace(/\ufffd{1,3}$/, '');
}

/**
 * Returns a Content-Type with which a browser can safely open a file: a known image, video, or audio type with its
 * codecs. Undefined for other types, which may run scripts.
 */
export function safeContentType(contentType: string): string | undefined {
  const type = mediaTypeEssence(contentType);
  const isMedia = /^(video|audio|image)\//.test(type) && type !== 'image/svg+xml' && extensionsOf(type).length > 0;
  return isMedia ? type + codecsIn(contentType) : undefined;
}

/** Returns the codecs parameter if it contains only plain names: `; codecs="avc1.64001f, mp4a.40.2"`. */
function codecsIn(contentType: string): string {
  const parameters = contentType.split(';').slice(1);
  const codecs = parameters.map((part) => part.trim().split('=')).filter(([name]) => name?.toLowerCase() === 'codecs');
  const names = (codecs[0]?.slice(1).join('=') ?? '')
    .replace(/^"|"$/g, '')
    .split(',')
    .map((name) => name.trim());
  const isSafe = codecs.length === 1 && names.length <= 8 && names.every((name) => /^[\w.+-]{1,60}$/.test(name));
  return isSafe ? `; codecs="${names.join(', ')}"` : '';
}
