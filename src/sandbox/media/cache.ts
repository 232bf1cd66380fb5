import { dimensionsFor, renderMedia } from './index.js';
import { renderSpeech } from './wav.js';

/** What decides how a file looks. */
export interface FileSpec {
  readonly kind: 'image' | 'video' | 'audio';
  readonly aspectRatio: string;
  readonly resolution: string;
  readonly durationS: number;
  readonly seed: number;
  /** Written large. */
  readonly label: string;
  readonly prompt: string;
}

/** A finished file. */
export interface MediaFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
}

/** Renders files when they are first asked for and keeps them while there is room. */
export interface MediaCache {
  /** The file of a spec: always the same bytes. */
  fileOf(spec: FileSpec): MediaFile;
}

/** Bytes of rendered files that are kept; the oldest go first. */
const KEPT_BYTES = 64 * 1024 * 1024;

const CONTENT_TYPES = { image: 'image/png', video: 'video/mp4', audio: 'audio/wav' } as const;

/** An empty cache. */
export function createMediaCache(): MediaCache {
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  let size = 0;
  const keep = (name: string, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
    kept.set(name, bytes);
    size += bytes.length;
    for (const [oldest, dropped] of kept) {
      if (size <= KEPT_BYTES || kept.size === 1) break;
      kept.delete(oldest);
      size -= dropped.length;
    }
    return bytes;
  };
  return {
    fileOf(spec) {
      const name = nameOf(spec);
      return { bytes: kept.get(name) ?? keep(name, render(spec)), contentType: CONTENT_TYPES[spec.kind] };
    },
  };
}

/** A text that only this file has. */
export function nameOf({ kind, aspectRatio, resolution, durationS, seed, label, prompt }: FileSpec): string {
  return JSON.stringify([kind, aspectRatio, resolution, durationS, seed, label, prompt]);
}

function render({ kind, aspectRatio, resolution, ...spec }: FileSpec): Uint8Array<ArrayBuffer> {
  if (kind === 'audio') return renderSpeech(spec.prompt);
  return renderMedia({ ...spec, kind, ...dimensionsFor({ kind, aspectRatio, resolution }) });
}
