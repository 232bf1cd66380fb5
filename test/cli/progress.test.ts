import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { bytesShown, createTerminal } from '../../src/cli/terminal.js';

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
  progress.show(...bytesShown(2_000_000, 4_000_000));
  vi.advanceTimersByTime(65_100);
  expect(stderr.lastLine).toBe('Uploading fox.png  50% of 4.00 MB  1:05');
  progress.stop();
  expect([stderr.lastLine, vi.getTimerCount()]).toEqual(['', 0]);
});

it('lets lines of the outcome stand above it', () => {
  const { terminal, progress } = start('Batch foxes.jsonl', { isTTY: true });
  progress.show('15/60  1 failed', 2);
  progress.aside(() => terminal.print(['line 1  completed']));
  expect(stdout.text).toBe('line 1  completed\n');
  expect(stderr.lastLine).toBe('Batch foxes.jsonl  15/60  1 failed  0:00');
  progress.stop();
});

it('shows the state and the time that is left, without escape sequences and without a second line', () => {
  const { progress } = start('job_1', { isTTY: true });
  progress.show('processing\u001b[2J, about 1:20 left', 'processing');
  vi.advanceTimersByTime(300);
  expect(stderr.lastLine).toBe('job_1  processing [2J, about 1:20 left  0:00');
  progress.show('x'.repeat(100), '');
  vi.advanceTimersByTime(300);
  expect(stderr.lastLine).toHaveLength(59);
  progress.stop();
});

it('is a line a step in a pipe: quarters of bytes', () => {
  const { progress } = start('Saving job_1', { isTTY: false });
  for (let done = 0; done <= 100; done++) progress.show(...bytesShown(done, 100));
  expect(stderr.text).toBe([0, 25, 50, 75, 100].map((part) => `Saving job_1: ${part}% of 0.00 MB\n`).join(''));
  expect(vi.getTimerCount()).toBe(0);
});

it('is silent for programs, on a terminal too', () => {
  stderr.isTTY = true;
  const terminal = createTerminal({ stdout, stderr }, { isJson: true });
  const progress = terminal.progress('job_1');
  progress.show('processing', 'processing');
  terminal.note('a note');
  terminal.result({ a: 'ä\u0085' }, ['a line']);
  progress.stop();
  expect([stderr.text, stdout.text]).toEqual(['', '{"a":"ä\\u0085"}\n']);
});
