// Acquires a lease on a file store, prints its name, and runs until it is killed.
import { fileStore } from '../../src/adapters/node/index.js';
import { leasesOf } from '../../src/store/port.js';

const [path = ''] = process.argv.slice(2);
process.stdout.write(`${leasesOf(fileStore(path))?.own()}\n`);
setInterval(() => {}, 1_000);
