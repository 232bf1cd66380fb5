// See watchdog.ts. Node runs this file directly.
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { TestDeadline } from './watched.ts';

const deadline = new TestDeadline(workerData);
setInterval(() => {
  const overdue = deadline.overdueTest();
  if (overdue === undefined) return;
  // A thread's streams pass through the main thread, which is blocked.
  writeSync(2, `\nA blocking loop: ${overdue}. Its process is killed.\n`);
  process.kill(process.pid, 'SIGKILL');
}, 500);
