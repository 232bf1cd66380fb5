import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory and those above it. Not with `recursive: true`, which never ends where the file system denies that a
 * parent is there, as /proc does.
 */
export async function makeDirectories(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectories(parent);
  try {
    await mkdir(path);
  } catch (reason) {
    // Another process was faster.
    if (!(await isDirectory(path))) throw reason;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
