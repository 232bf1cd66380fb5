#!/usr/bin/env node
import { EXIT } from './errors.js';
import { main } from './main.js';

// A reader that exits early (`| head`), or a full disk behind a redirect, must not interrupt a job that is already charged.
process.stderr.on('error', () => {});
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return;
  process.stderr.write(`Error: stdout cannot be written: ${message}\n`);
  process.exitCode = EXIT.failed;
});

const code = await main(process.argv.slice(2), process);
// Flush the pipes, but wait for nothing else: a store on a full disk retries its writes for minutes.
for (const stream of [process.stdout, process.stderr]) await new Promise((resolve) => stream.write('', resolve));
await new Promise((resolve) => setImmediate(resolve));
process.exit(process.exitCode || code);
