// Run by client.test.ts in a separate process: a wait without advance must not keep it alive.
import { createSandbox } from '../../src/sandbox/index.js';

const sandbox = createSandbox({ clock: 'manual' });
sandbox.client().videos.createAndWait({ prompt: 'a fox at dawn' });
await sandbox.advance(1000);
process.stdout.write(`${sandbox.jobs[0]?.status}`);
