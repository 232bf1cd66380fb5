import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createTerminal } from '../../src/cli/terminal.js';

let stdout: Sink;
let stderr: Sink;
beforeEach(() => {
  vi.useFakeTimers();
  stdout = new Sink();
  stderr = new Sink();
});
afterEach(() => vi.useRealTimers());

class Sink extends Writable {
  text = '';
  isTTY = false;
  columns = 60;
  override _write(chunk: unknown, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
  }
  /** What a person sees last on the line. */
  get lastLine(): string {
    return this.text.split('\r\u001b[K').at(-1) ?? '';
  }
}

const start = (label: string, { isTTY }: { readonly isTTY: boolean }) => {
  stderr.isTTY = isTTY;
  const terminal = createTerminal({ stdout, stderr }, { isJson: false });
  return { terminal, progress: terminal.progress(label) };
};

it('is one line with percent, size and time on a terminal, which is gone at the end', () => {
  const { progress } = start('Uploading fox.png', { isTTY: true });
  progress.bytes(2_000_000, 4_000_000);
  vi.advanceTimersByTime(65_100);
  expect(stderr.lastLine).toBe('Uploading fox.png  50% of 4.00 MB  1:05');
  progress.stop();
  expect([stderr.lastLine, vi.getTimerCount()]).toEqual(['', 0]);
});

it('lets lines of the outcome stand above it', () => {
  const { terminal, progress } = start('Batch foxes.jsonl', { isTTY: true });
  progress.count(15, 60, '  1 failed');
  progress.aside(() => terminal.print(['line 1  completed']));
  expect(stdout.text).toBe('line 1  completed\n');
  expect(stderr.lastLine).toBe('Batch foxes.jsonl  15/60  1 failed  0:00');
  progress.stop();
});

it('shows the state and the time that is left, without escape sequences and without a second line', () => {
  const { progress } = start('job_1', { isTTY: true });
  progress.state(`processing\u001b[2J`, { etaMs: 80_000, share: 0.4 });
  vi.advanceTimersByTime(300);
  expect(stderr.lastLine).toBe('job_1  processing [2J, about 1:20 left  0:00');
  progress.state('x'.repeat(100));
  vi.advanceTimersByTime(300);
  expect(stderr.lastLine).toHaveLength(59);
  progress.stop();
});

it('is a line a step in a pipe: quarters of bytes, tenths of a count', () => {
  const saving = start('Saving job_1', { isTTY: false }).progress;
  for (let done = 0; done <= 100; done++) saving.bytes(done, 100);
  const batch = start('Batch', { isTTY: false }).progress;
  for (let done = 0; done <= 200; done++) batch.count(done, 200, '');
  const lines = stderr.text.split('\n');
  expect(lines.slice(0, 5)).toEqual([0, 25, 50, 75, 100].map((part) => `Saving job_1: ${part}% of 0.00 MB`));
  expect(lines.slice(5, 8)).toEqual(['Batch: 0/200', 'Batch: 20/200', 'Batch: 40/200']);
  expect(vi.getTimerCount()).toBe(0);
});

it('is silent for programs, on a terminal too', () => {
  stderr.isTTY = true;
  const terminal = createTerminal({ stdout, stderr }, { isJson: true });
  const progress = terminal.progress('job_1');
  progress.state('processing');
  progress.bytes(1, 2);
  terminal.note('a note');
  terminal.result({ a: 'ä\u0085' }, ['a line']);
  progress.stop();
  expect([stderr.text, stdout.text]).toEqual(['', '{"a":"ä\\u0085"}\n']);
});
