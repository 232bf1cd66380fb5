import { expect, test, vi } from 'vitest';
import { SkipReporter } from './support/skip-reporter.js';

test('a run ends with the number of skipped tests by reason', () => {
  const actual = vi.spyOn(console, 'log').mockImplementation(() => {});
  const reporter = new SkipReporter();
  const file = (id: string, skipped: number) => ({ id, children: { allTests: () => new Array(skipped).fill(id) } });
  reporter.onUserConsoleLog({
    taskId: 'a',
    content: 'Skipped: redis-server is not installed (apt-get install redis-server).',
  });
  reporter.onUserConsoleLog({ taskId: 'b_0', content: 'skipped: redis-server is not installed (apt-get)\n' });
  reporter.onUserConsoleLog({ taskId: 'c', content: 'skipped: chromium is not installed (apt-get)\n' });
  reporter.onTestRunEnd([file('a', 2), file('b', 3), file('c', 1), file('d', 9)]);
  expect(actual.mock.calls.flat().join('\n')).toBe(
    'Skipped: 6 tests.\n  5: redis-server is not installed\n  1: chromium is not installed',
  );
  actual.mockRestore();
});
