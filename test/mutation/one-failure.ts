// One failure is enough for a mutant. Without this, Vitest would load all other test files before it says so.
import { afterEach } from 'vitest';

const process = globalThis as { hasFailedTest?: boolean };
if (process.hasFailedTest) throw new Error('Not loaded: a test of an earlier file has failed.');
afterEach(({ task }) => {
  process.hasFailedTest ||= task.result?.state === 'fail';
});
