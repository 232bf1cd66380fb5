import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, it, vi } from 'vitest';
import { createTerminal } from '../../src/cli/terminal.js';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const fixture = cliOnSandbox();
const { sandbox, pathOf } = fixture;
const onTerminal = (args: readonly string[], env: Record<string, string> = {}) =>
  runCli(args, { ...fixture.options, env: { ...fixture.env, ...env }, isTerminal: true });
/** Starts an escape sequence that erases a line or moves the cursor. */
const ESCAPE = '\u001B[';

it('a job has one terminal line with its status, elapsed time, and remaining time', async () => {
  const { code, stdout, stderr } = await onTerminal(['video', 'a fox', '--out', 'a.mp4', ...QUICK]);
  expect(code).toBe(0);
  expect(stderr).toContain(ESCAPE);
  const text = stripVTControlCharacters(stderr);
  expect(text).toMatch(/job_\w+ {2}processing {2}0:00 elapsed/);
  expect(text).toMatch(/Saving job_\w+ {2}█+ {2}100% of [\d.]+ MB/);
  const { stdout: plain } = await runCli(['job', sandbox.jobs[0]?.id ?? ''], fixture.options);
  expect(stdout.split('\n')[0]).toBe(plain.split('\n')[0]);
  expect(stdout).not.toContain(ESCAPE);
});

it('the line includes the remaining time if an earlier command completed such a job', async () => {
  const env = { XDG_CACHE_HOME: pathOf('cache') };
  /** Returns the line on acceptance, when this process's client knows no duration. */
  const acceptanceLine = async (...args: string[]) => {
    // Slower than the first poll, even on a busy machine.
    const { stderr } = await onTerminal(['image', 'a fox [slow:1s]', ...QUICK, ...args], env);
    return stripVTControlCharacters(stderr).match(/.*processing.*/)?.[0];
  };
  expect(await acceptanceLine()).toMatch(/processing {2}0:00 elapsed$/);
  expect(await acceptanceLine()).toMatch(/processing {2}0:00 elapsed, about 0:0\d left$/);
  expect(await acceptanceLine('--model', 'svc-image-pro')).toMatch(/elapsed$/);
  const file = pathOf('cache/gen-client/durations.json');
  for (const content of ['{"', 'null', '{"a":["b"]}']) {
    writeFileSync(file, content);
    await acceptanceLine();
    expect(Object.values(JSON.parse(readFileSync(file, 'utf8')))).toEqual([[expect.any(Number)]]);
  }
});

it('no duration is stored without a terminal or a cache directory', async () => {
  const env = { ...fixture.env, XDG_CACHE_HOME: pathOf('cache') };
  expect((await runCli(['video', 'a fox', ...QUICK], { ...fixture.options, env })).code).toBe(0);
  expect((await onTerminal(['video', 'a fox', ...QUICK])).code).toBe(0);
  expect(readdirSync(fixture.folder)).toEqual([]);
});

it('the times advance between updates', () => {
  vi.useFakeTimers();
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 100 });
  const terminal = createTerminal({ stdout: new PassThrough(), stderr, env: {} }, { isJson: false });
  terminal.progress('job_1')({ text: 'processing', step: 'processing', etaMs: 65_000 });
  vi.advanceTimersByTime(3_050);
  terminal.end();
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  const frames = stripVTControlCharacters(String(stderr.read())).split('\n').filter(Boolean);
  const line = (elapsed: string, left: string) => `job_1  processing  ${elapsed} elapsed, about ${left} left`;
  expect(frames).toEqual([line('0:00', '1:05'), line('0:01', '1:03'), line('0:02', '1:02'), line('0:03', '1:01')]);
});

it('a batch has one progress bar below its finished rows', async () => {
  const rows = Array.from({ length: 4 }, (_, at) => ({ call: 'images', model: 'svc-image-fast', prompt: `fox ${at}` }));
  const failing = { ...rows[0], prompt: 'a fox [fail:generation_failed]' };
  writeFileSync(pathOf('p.jsonl'), [...rows, failing].map((row) => JSON.stringify(row)).join('\n'));
  const { code, stdout, stderr } = await onTerminal(['batch', 'p.jsonl', '--out', 'out/', ...QUICK]);
  expect(code).toBe(1);
  const text = stripVTControlCharacters(stderr);
  expect(text).toMatch(/Batch {2}░{20} {2}0 of 5 done, 0 failed, 0 tokens {2}0:00 elapsed/);
  expect(text).toMatch(/Batch {2}█{20} {2}5 of 5 done, 1 failed, 8 tokens/);
  expect(stdout.split('\n').filter((line) => line.startsWith('line '))).toHaveLength(5);
});

it('the rows of a batch are aligned on a terminal only', async () => {
  const rows = Array.from({ length: 10 }, (_, at) => ({ call: 'images', prompt: `fox ${at}` }));
  writeFileSync(pathOf('p.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'));
  const args = ['batch', 'p.jsonl', '--out', 'out/', ...QUICK];
  const rowPrefixes = ({ stdout }: { stdout: string }) => stdout.match(/^line 1?[09] +(?=completed)/gm)?.sort();
  expect(rowPrefixes(await onTerminal(args))).toEqual(['line 10  ', 'line 9   ']);
  expect(rowPrefixes(await runCli(args, fixture.options))).toEqual(['line 10  ', 'line 9  ']);
});

it.each([{ CI: 'true' }, { NO_COLOR: '1' }, { TERM: 'dumb' }])('nothing is redrawn with %j', async (env) => {
  const args = ['video', 'a fox', '--out', 'a.mp4', ...QUICK];
  const { stderr } = await onTerminal(args, env);
  expect(stderr).not.toContain(ESCAPE);
  expect(stderr).toMatch(/^Job job_\w+ accepted, \d+ tokens reserved\.\njob_\w+: /);
});

it('nothing is redrawn with --json or without a terminal', async () => {
  const args = ['image', 'a fox', ...QUICK];
  expect((await onTerminal([...args, '--json'])).stderr).toBe('');
  expect((await runCli(args, fixture.options)).stderr).not.toContain(ESCAPE);
});
