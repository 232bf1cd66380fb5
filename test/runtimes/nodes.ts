import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));

/** The Node executables. Node 24 is the repository's. The others are installed next to this file, for Linux. */
export const NODES: Readonly<Record<string, string>> = {
  'Node 22': join(HERE, 'node_modules/node-22-linux-x64/bin/node'),
  'Node 24': join(ROOT, 'node_modules/.bin/node'),
  'Node 26': join(HERE, 'node_modules/node-26-linux-x64/bin/node'),
};
