import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
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
  columns = 120;
  override _write(chunk: unknown, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
  }
  /** What a person sees last on the line, without the codes that move the cursor. */
  get lastLine(): string {
    const plain = this.text.split('\u001b[1G').at(-1) ?? '';
    return stripVTControlCharacters(plain).trimEnd();
  }
}

it('is a bar with percent and size on a terminal', () => {
  stderr.isTTY = true;
  const progress = createTerminal({ stdout, stderr }, { isJson: false }).progress('Uploading fox.png');
  progress.bytes(2_000_000, 4_000_000);
  vi.advanceTimersByTime(1100);
  expect(stderr.lastLine).toBe(`Uploading fox.png  ${'='.repeat(15)}${'.'.repeat(15)}  50% of 4.00 MB  1s`);
  progress.bytes(4_000_000, 4_000_000);
  vi.advanceTimersByTime(1100);
  expect(stderr.lastLine).toBe(`Uploading fox.png  ${'='.repeat(30)}  100% of 4.00 MB  2s`);
  progress.stop();
});

it('counts what is done, and lets lines of the outcome stand above it', () => {
  stderr.isTTY = true;
  const terminal = createTerminal({ stdout, stderr }, { isJson: false });
  const progress = terminal.progress('Batch foxes.jsonl');
  progress.count(15, 60, '  1 failed');
  progress.aside(() => terminal.print(['line 1  completed']));
  vi.advanceTimersByTime(1100);
  expect(stderr.lastLine).toMatch(/^Batch foxes\.jsonl {2}={7,8}\.+ {2}15\/60 {2}1 failed {2}1s$/);
  expect(stdout.text).toBe('line 1  completed\n');
  progress.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('counts in tenths in a pipe', () => {
  const progress = createTerminal({ stdout, stderr }, { isJson: false }).progress('Batch');
  for (let done = 0; done <= 200; done++) progress.count(done, 200, '');
  expect(stderr.text.split('\n').slice(0, 3)).toEqual(['Batch: 20/200', 'Batch: 40/200', 'Batch: 60/200']);
});

it('shows state and time while a job runs, and leaves no timer behind', () => {
  stderr.isTTY = true;
  const progress = createTerminal({ stdout, stderr }, { isJson: false }).progress('job_1');
  progress.state('processing\u001b[2J');
  vi.advanceTimersByTime(65_100);
  expect(stderr.lastLine).toBe(`job_1  ${'.'.repeat(30)}  processing [2J  1m5s`);
  progress.stop();
  expect(vi.getTimerCount()).toBe(0);
  expect(stderr.text).toContain('\u001b[?25h');
});

it('is one plain line a step in a pipe', () => {
  const progress = createTerminal({ stdout, stderr }, { isJson: false }).progress('Saving job_1');
  for (let done = 0; done <= 100; done++) progress.bytes(done, 100);
  progress.stop();
  expect(stderr.text).toBe([0, 25, 50, 75, 100].map((part) => `Saving job_1: ${part}%\n`).join(''));
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
