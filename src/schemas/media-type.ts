/** What an upload is to the service. VIDEO is documented; IMAGE and AUDIO follow its pattern. */
export type UploadType = 'IMAGE' | 'VIDEO' | 'AUDIO' | (string & {});

/** Media type to file extensions; the first one is the one to write, all are read. */
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
  'video/mp4': ['mp4', 'm4v'],
  'video/quicktime': ['mov', 'qt'],
  'video/webm': ['webm'],
  'video/x-matroska': ['mkv'],
  'video/x-msvideo': ['avi'],
  'video/mpeg': ['mpg', 'mpeg'],
  'video/3gpp': ['3gp'],
  'audio/mpeg': ['mp3'],
  'audio/wav': ['wav'],
  'audio/ogg': ['ogg', 'oga', 'opus'],
  'audio/flac': ['flac'],
  'audio/aac': ['aac'],
  'audio/mp4': ['m4a'],
  'audio/webm': ['weba'],
  'audio/aiff': ['aiff', 'aif'],
  'application/json': ['json'],
  'application/zip': ['zip'],
} as const satisfies Readonly<Record<string, readonly [string, ...string[]]>>;

/** Other names in use for the same thing. */
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
};

/** The media type alone, in lower case: `Video/MP4; codecs=avc1` is `video/mp4`. */
export function mediaTypeEssence(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** The extensions of a media type, the usual one first; none for a type that is not in the table. */
export function extensionsOf(contentType: string): readonly string[] {
  const type = mediaTypeEssence(contentType);
  const table: Readonly<Record<string, readonly string[]>> = EXTENSIONS;
  const known = Object.hasOwn(ALIASES, type) ? ALIASES[type] : type;
  return known !== undefined && Object.hasOwn(table, known) ? (table[known] ?? []) : [];
}

/** The media type of a file name by its extension. */
export function mediaTypeOfName(name: string): string | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase();
  if (extension === undefined) return undefined;
  return Object.entries<readonly string[]>(EXTENSIONS).find(([, all]) => all.includes(extension))?.[0];
}

/** The upload type that a media type belongs to: IMAGE, VIDEO or AUDIO. */
export function uploadTypeOf(contentType: string): UploadType | undefined {
  const type = mediaTypeEssence(contentType);
  const family = ((Object.hasOwn(ALIASES, type) ? ALIASES[type] : undefined) ?? type).split('/', 1)[0];
  return family === 'image' || family === 'video' || family === 'audio' ? family.toUpperCase() : undefined;
}

/** Longest name sent; every storage behind the service takes it, in bytes of UTF-8 too. */
const LONGEST_NAME = 80;
/** Characters at the end of a longer name that are looked at. */
const LOOKED_AT = 1_000;
/** Whether Windows keeps the name for a device, so that no file can have it. */
export function isDeviceName(name: string): boolean {
  return /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(name);
}

/**
 * Reduces a name or path to a safe file name: the last segment, letters and digits of any script, `.`, `_` and `-`, no
 * dot in front, at most 80 characters, with the media type's extension where it has none.
 */
export function safeFileName(name: string | undefined, mimeType: string): string {
  // A name comes from a stranger and may be of any length: only its end is looked at.
  const end = (name ?? '').slice(-LOOKED_AT);
  const last = end.split(/[/\\]/).findLast((segment) => segment.trim() !== '') ?? '';
  const kept = last.normalize('NFC').replace(/[^\p{L}\p{M}\p{N}._-]+/gu, '_');
  const bare = kept.replace(/^[._]+|(?<![._])[._]+$/g, '');
  const dot = bare.lastIndexOf('.');
  const extension = dot > 0 ? bare.slice(dot + 1) : (extensionsOf(mimeType)[0] ?? '');
  const stem = Array.from(dot > 0 ? bare.slice(0, dot) : bare).slice(0, LONGEST_NAME - extension.length - 1);
  const safe = `${stem.join('') || 'upload'}${extension === '' ? '' : `.${extension}`}`;
  return isDeviceName(safe) ? `_${safe}` : safe;
}

/**
 * The Content-Type under which a browser may be given a file: a known picture, video or sound, with its codecs where they are
 * names alone. Undefined for anything else, such as what a script can run in.
 */
export function safeContentType(contentType: string): string | undefined {
  const type = mediaTypeEssence(contentType);
  const isMedia = /^(video|audio|image)\//.test(type) && type !== 'image/svg+xml' && extensionsOf(type).length > 0;
  return isMedia ? type + codecsIn(contentType) : undefined;
}

/** The codecs of a media type, where they are names alone: `; codecs="avc1.64001f, mp4a.40.2"`. */
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
