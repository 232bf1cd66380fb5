import { extensionsOf } from '../schemas/media-type.js';

/** Longest name sent; every storage behind the service takes it, in bytes of UTF-8 too. */
const LONGEST_NAME = 80;
/** Characters at the end of a longer name that are looked at. */
const LOOKED_AT = 1_000;
/** Names that Windows keeps for devices. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

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
  return DEVICE.test(safe) ? `_${safe}` : safe;
}
