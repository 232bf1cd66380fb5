// See watchdog.ts. Node runs this file as it stands.
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { Watched } from './watched.ts';

const watched = new Watched(workerData);
setInterval(() => {
  const late = watched.late();
  if (late === undefined) return;
  // The streams of a thread pass through the main one, which has no turn left.
  writeSync(2, `\nA loop that never gives way: ${late}. Its process is ended.\n`);
  process.kill(process.pid, 'SIGKILL');
}, 500);
