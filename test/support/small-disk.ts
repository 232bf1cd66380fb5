import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A file system of its own with little room, so that it is really full when it is. */
export interface SmallDisk {
  /** Leaves so many bytes of room, rounded up to whole pages. */
  fill(leftBytes: number): void;
  /** Makes room again. */
  empty(): void;
  unmount(): void;
}

const FILLER = '.filler';
const CHUNK = Buffer.alloc(64 * 1024, 1);

/** Mounts a disk of so many bytes at an empty folder. Undefined where this process may not, and says what is left out. */
export function mountSmallDisk(folder: string, bytes: number): SmallDisk | undefined {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'gen-client-test', folder]);
  if (mounted.status !== 0) {
    console.warn('left out: what a really full disk does (this process may not mount one)');
    return undefined;
  }
  const filler = join(folder, FILLER);
  const empty = () => rmSync(filler, { force: true });
  return {
    fill(leftBytes) {
      empty();
      const file = openSync(filler, 'w');
      const size = written(file);
      ftruncateSync(file, Math.max(0, size - leftBytes));
      closeSync(file);
    },
    empty,
    unmount: () => void spawnSync('umount', ['-l', folder]),
  };
}

/** Writes until no byte fits. */
function written(file: number): number {
  for (let size = 0; ; ) {
    try {
      size += writeSync(file, CHUNK);
    } catch {
      return size;
    }
  }
}
