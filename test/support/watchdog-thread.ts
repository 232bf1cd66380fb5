// See watchdog.ts. Node runs this file directly.
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { Watched } from './watched.ts';

const watched = new Watched(workerData);
setInterval(() => {
  const late = watched.late();
  if (late === undefined) return;
  // A thread's streams pass through the main thread, which is blocked.
  writeSync(2, `\nA blocking loop: ${late}. Its process is killed.\n`);
  process.kill(process.pid, 'SIGKILL');
}, 500);
