import { join } from 'node:path';
import { fileJournal } from '../../src/adapters/node/index.js';
import { GenClient } from '../../src/index.js';
import { runProgram } from './program.js';

const [baseUrl = '', apiKey = '', folder = '', calls = '0'] = process.argv.slice(2);
const journal = fileJournal(join(folder, 'jobs.jsonl'), { keep: Number.POSITIVE_INFINITY });
const client = new GenClient({ baseUrl, apiKey, journal, rateLimit: 'off' });
process.stdout.write('started\n');
await runProgram({ client, journal, folder, calls: Number(calls), concurrency: 16 });
