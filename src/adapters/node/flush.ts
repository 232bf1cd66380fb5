import { fsync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';

const flushDescriptor = promisify(fsync);

export function fileSystemCode(reason: unknown): string {
  return reason instanceof Error && 'code' in reason ? String(reason.code) : '';
}

/** Flushes a file to the disk. Node's permission model forbids this by descriptor, and Yarn PnP by handle. */
export async function flush(file: FileHandle): Promise<void> {
  try {
    await file.sync();
  } catch (reason) {
    // Disk errors have a code.
    if (fileSystemCode(reason) !== '') throw reason;
    await flushDescriptor(file.fd);
  }
}

export async function flushPath(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await flush(file);
  } finally {
    await file.close();
  }
}

/** Flushes a directory, so that a new file name survives a power failure. Windows can't do this. */
export async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r').catch(() => undefined);
  if (directory) await flush(directory).catch(() => undefined);
  await directory?.close();
}
