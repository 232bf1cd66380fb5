#!/usr/bin/env node
import { EXIT } from './errors.js';
import { main } from './main.js';

// A reader that leaves early (`| head`), or a full disk behind a redirect, must not end what is being paid for.
process.stderr.on('error', () => {});
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return;
  process.stderr.write(`Error: stdout cannot be written: ${message}\n`);
  process.exitCode = EXIT.failed;
});

const code = await main(process.argv.slice(2), process);
// What is still on its way into a pipe must arrive. Nothing else is waited for: a store whose disk is full is told again
// for minutes what it has missed.
for (const stream of [process.stdout, process.stderr]) await new Promise((resolve) => stream.write('', resolve));
await new Promise((resolve) => setImmediate(resolve));
process.exit(process.exitCode || code);
