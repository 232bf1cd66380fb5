import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));

/** The repository's Node, a development dependency. */
export const NODE = join(ROOT, 'node_modules/.bin/node');

/** The Node executables. Node 22 and 26 are installed in this folder, for Linux only. */
export const NODES: Readonly<Record<string, string>> = {
  'Node 22': join(HERE, 'node_modules/node-22-linux-x64/bin/node'),
  'Node 24': NODE,
  'Node 26': join(HERE, 'node_modules/node-26-linux-x64/bin/node'),
};
