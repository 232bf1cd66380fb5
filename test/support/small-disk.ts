import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A small separate file system that tests can fill. */
export interface SmallDisk {
  /** Fills the disk except for this many bytes, rounded up to full pages. */
  fill(leftBytes: number): void;
  /** Frees the disk. */
  empty(): void;
  unmount(): void;
}

const FILLER = '.filler';
const CHUNK = Buffer.alloc(64 * 1024, 1);

/** Mounts a disk of this size at an empty folder. Without permission, logs a message and returns undefined. */
export function mountSmallDisk(folder: string, bytes: number): SmallDisk | undefined {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'gen-client-test', folder]);
  if (mounted.status !== 0) {
    console.warn('skipped: tests with a full disk (this process may not mount one)');
    return undefined;
  }
  const filler = join(folder, FILLER);
  const empty = () => rmSync(filler, { force: true });
  return {
    fill(leftBytes) {
      empty();
      const file = openSync(filler, 'w');
      const size = writeUntilFull(file);
      ftruncateSync(file, Math.max(0, size - leftBytes));
      closeSync(file);
    },
    empty,
    unmount: () => void spawnSync('umount', ['-l', folder]),
  };
}

/** Writes until the disk is full. Returns the number of bytes written. */
function writeUntilFull(file: number): number {
  for (let size = 0; ; ) {
    try {
      size += writeSync(file, CHUNK);
    } catch {
      return size;
    }
  }
}
