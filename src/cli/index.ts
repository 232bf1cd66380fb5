#!/usr/bin/env node
import { main } from './main.js';

// A reader that has seen enough (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

// Not process.exit: what is still on its way into a pipe must arrive.
process.exitCode = await main(process.argv.slice(2), process);
