// Rows that an earlier run has left: the answer to their create is unknown, or their job has failed.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Row, readRows } from '../../src/cli/batch/rows.js';
import { attemptKey } from '../../src/cli/batch/standing.js';
import { cliOnSandbox } from './cli-on-sandbox.js';

const place = cliOnSandbox();
const { sandbox, cli } = place;
const at = '2026-01-01T00:00:00.000Z';
/** Writes a prompts file of images, each of 2 tokens. */
async function images(count: number, fields: object = {}): Promise<Row[]> {
  const rows = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ ...fields, call: 'images', prompt: `fox ${index}` }),
  );
  const path = join(place.folder, 'prompts.jsonl');
  writeFileSync(path, rows.join('\n'));
  return readRows(path, '');
}
/** Writes the journal of the earlier run. */
function journal(entries: readonly object[]): void {
  mkdirSync(join(place.folder, 'out'));
  const lines = entries.map((entry) => `${JSON.stringify({ at, ...entry })}\n`);
  writeFileSync(join(place.folder, 'out/prompts.journal.jsonl'), lines.join(''));
}
const sent = ({ key, call, params }: Row) => ({ key, call, params });
const failed = (row: Row, errorCode = 'generation_failed') => [
  sent(row),
  { phase: 'accepted', key: row.key, jobId: `job_${row.line}` },
  { phase: 'final', key: row.key, jobId: `job_${row.line}`, status: 'failed', errorCode },
];
/** Makes the job of a row, as the earlier run has. */
async function accepted({ key, params }: Row): Promise<string> {
  const { job } = await sandbox.client().images.create(params as never, { idempotencyKey: key });
  return job.id;
}
async function batch(...words: string[]) {
  const { code, stdout } = await cli('batch', 'prompts.jsonl', '--out', 'out/', '--poll', '100ms', '--json', ...words);
  const documents = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { code, rows: documents.slice(0, -1), report: documents.at(-1).report };
}
const keysSent = () =>
  sandbox.requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key']);
/** A run sends a call that waits for a review again so often. */
const RESUBMISSIONS = 20;

describe('a row whose create may have reached the service', () => {
  it('is left out when it would pass --max-tokens, and a higher limit finishes it', async () => {
    journal((await images(5)).map(sent));
    const { code, rows, report } = await batch('--max-tokens', '4');
    expect({ code, report }).toMatchObject({ code: 1, report: { completed: 2, notStarted: 3, tokens: 4 } });
    expect(sandbox.ledger().spentTokens).toBe(4);
    const left = rows.filter(({ status }) => status === 'not_started');
    expect(left.map(({ error }) => error.message)).toEqual(
      Array(3).fill('It would pass --max-tokens. It may have a job already: a higher limit finishes it.'),
    );
    expect((await batch('--max-tokens', '10')).report).toMatchObject({ completed: 5, notStarted: 0, tokens: 10 });
  });

  it('runs before the failed rows that are made anew and wait for its price', async () => {
    const [first, second, third] = (await images(3)) as [Row, Row, Row];
    journal([...failed(first), ...failed(second), sent(third)]);
    const { code, rows, report } = await batch('--retry-failed', '--concurrency', '1');
    expect({ code, report }).toMatchObject({ code: 0, report: { completed: 3, tokens: 6 } });
    expect(rows.map(({ line }) => line)).toEqual([3, 1, 2]);
  });
});

describe('a row whose job was running when its run ended', () => {
  it('counts in --max-tokens by its charge where its price was not told, before another is paid for', async () => {
    const [first, second, third] = (await images(3)) as [Row, Row, Row];
    const jobId = await accepted(third);
    journal([sent(first), sent(third), { phase: 'accepted', key: third.key, jobId }]);
    const { report } = await batch('--max-tokens', '4', '--concurrency', '1');
    expect(report).toMatchObject({ completed: 2, notStarted: 1, tokens: 4 });
    expect(sandbox.ledger().spentTokens).toBe(4);
    expect(keysSent()).not.toContain(second.key);
  });

  it('stops the rows that are still to be paid for where its price cannot be read', async () => {
    const [first, second] = (await images(2)) as [Row, Row];
    const jobId = await accepted(second);
    journal([sent(first), sent(second), { phase: 'accepted', key: second.key, jobId }]);
    sandbox.faults.add({ match: { method: 'GET', path: '/v1/jobs/*' }, status: 403, code: 'forbidden', times: 1 });
    const { rows, report } = await batch('--max-tokens', '4', '--concurrency', '1');
    expect(report).toMatchObject({ completed: 1, notStarted: 1, tokens: 2 });
    expect(rows[0].error.message).toBe('The batch was stopped. It may have a job already: the next run finishes it.');
    expect(keysSent()).toEqual([second.key]);
  });

  it('is made anew under its next key where its references were under review to the end', async () => {
    const [row] = (await images(1)) as [Row];
    sandbox.outcomes.next({ errorCode: 'reference_asset_pending', errorData: { retry_after: 1 } });
    const jobId = await accepted(row);
    journal([sent(row), { phase: 'accepted', key: row.key, jobId }]);
    expect((await batch()).report).toMatchObject({ completed: 1, tokens: 2 });
    expect(keysSent()).toEqual([row.key, attemptKey(row, 1)]);
  });
});

describe('a failed row', () => {
  it('is made anew under a key of its own each time', async () => {
    const [row] = (await images(1)) as [Row];
    const generationFailed = { errorCode: 'generation_failed' };
    for (let time = 0; time < 3; time++) sandbox.outcomes.next(generationFailed);
    for (let time = 0; time < 3; time++) await batch('--retry-failed');
    expect((await batch('--retry-failed')).report).toMatchObject({ completed: 1, tokens: 2 });
    expect(keysSent()).toEqual([0, 1, 2, 3].map((attempt) => attemptKey(row, attempt)));
  });
});

describe('a row whose first key was refused for a review', () => {
  it('is done when its job was made under a second key', async () => {
    const [row] = (await images(1, { id: 'fox' })) as [Row];
    const path = join(place.folder, 'out/fox.png');
    const second = { ...sent(row), key: `${row.key}:w1` };
    journal([
      ...[sent(row), { phase: 'closed', key: row.key, reason: 'refused' }],
      ...[second, { phase: 'accepted', key: second.key, jobId: 'job_1' }],
      { phase: 'final', jobId: 'job_1', status: 'completed', chargedTokens: 2 },
      { phase: 'stored', jobId: 'job_1', places: [path] },
    ]);
    writeFileSync(path, 'a fox');
    const { code, rows } = await batch('--max-tokens', '2');
    expect({ code, rows }).toMatchObject({ code: 0, rows: [{ status: 'completed', job: { id: 'job_1' } }] });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('a row whose references were still under review at the end of its run', () => {
  it('is made anew under a key of its own, without the failed jobs of that run', async () => {
    await images(1);
    const pending = { errorCode: 'reference_asset_pending', errorData: { retry_after: 1 } };
    for (let job = 0; job <= RESUBMISSIONS; job++) sandbox.outcomes.next(pending);
    expect((await batch()).report).toMatchObject({ completed: 0, failed: 1 });
    const before = new Set(keysSent());
    expect(before.size).toBe(RESUBMISSIONS + 1);
    expect((await batch()).report).toMatchObject({ completed: 1, tokens: 2 });
    const after = keysSent().slice(before.size);
    expect({ count: after.length, isKnown: before.has(after[0]) }).toEqual({ count: 1, isKnown: false });
  });
});
