import { dimensionsFor, renderMedia } from '../media/index.js';
import { renderTone } from '../media/wav.js';
import { hashOf } from '../world/random.js';
import type { StoredJob } from '../world/store.js';

/** Bytes of rendered files that are kept; the oldest go first. */
const KEPT_BYTES = 64 * 1024 * 1024;

const CONTENT_TYPES = { image: 'image/png', video: 'video/mp4', audio: 'audio/wav' } as const;

/** A file with its type and tag. */
export interface ShelfFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Strong, with its quotes: another content has another one, also after a reset that repeats the ids. */
  readonly etag: string;
}

/** Finished files, made when they are first asked for and kept while there is room. */
export interface MediaShelf {
  /** The file of a completed job; the same job gives the same bytes. */
  fileOf(job: StoredJob): ShelfFile;
}

/** An empty shelf. */
export function createMediaShelf(): MediaShelf {
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  let size = 0;
  const keep = (id: string, bytes: Uint8Array<ArrayBuffer>): void => {
    kept.set(id, bytes);
    size += bytes.length;
    for (const [oldest, dropped] of kept) {
      if (size <= KEPT_BYTES || kept.size === 1) break;
      kept.delete(oldest);
      size -= dropped.length;
    }
  };
  return {
    fileOf(job) {
      // By all that is drawn: after a reset the same id may be another job's.
      const name = JSON.stringify([job.media, job.modelId, job.prompt]);
      const bytes = kept.get(name) ?? render(job);
      if (!kept.has(name)) keep(name, bytes);
      const etag = `"${job.id}-${hashOf(name).toString(36)}"`;
      return { bytes, etag, contentType: CONTENT_TYPES[job.media.kind] };
    },
  };
}

function render({ media, modelId, prompt }: StoredJob): Uint8Array<ArrayBuffer> {
  const { kind, aspectRatio, resolution, durationS, seed } = media;
  if (kind === 'audio') return renderTone(prompt);
  const size = dimensionsFor({ kind, aspectRatio, resolution });
  return renderMedia({ kind, ...size, durationS, seed, label: modelId, prompt });
}

/** The seed of a job's picture: the caller's, else its id's. */
export function mediaSeed(given: number | undefined, id: string): number {
  return given ?? hashOf(id);
}
