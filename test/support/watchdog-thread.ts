// See watchdog.ts. Node runs this file directly.
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { TestDeadline } from './watched.ts';

const watched = new TestDeadline(workerData);
setInterval(() => {
  const late = watched.overdueTest();
  if (late === undefined) return;
  // A thread's streams pass through the main thread, which is blocked.
  writeSync(2, `\nA blocking loop: ${late}. Its process is killed.\n`);
  process.kill(process.pid, 'SIGKILL');
}, 500);
