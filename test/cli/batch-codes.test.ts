import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { errorDocument, UsageError } from '../../src/cli/errors.js';
import {
  ConnectionError,
  GenError,
  NotFoundError,
  ResponseError,
  TimeoutError,
  UploadError,
} from '../../src/errors/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';

// `batch --json`: what did not come to a file says why, as a value that a program can switch on.

const place = cliOnSandbox();
const { sandbox, cli } = place;
const CREATES = { method: 'POST', path: '/v1/images' };
const PAUSED = { status: 503, code: 'dispatch_disabled' };

async function batch(prompts: readonly string[], ...words: string[]) {
  const rows = prompts.map((prompt) => JSON.stringify({ call: 'images', prompt, model: 'svc-image-fast' }));
  writeFileSync(join(place.folder, 'prompts.jsonl'), rows.join('\n'));
  const flags = ['--out', 'out/', '--poll', '100ms', '--concurrency', '1', '--json'];
  const { stdout } = await cli('batch', 'prompts.jsonl', ...flags, ...words);
  const documents = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return documents.slice(0, -1).map(({ status, error }) => ({ status, name: error?.name, code: error?.code }));
}

describe('the line of a row that did not come to a file has a code', () => {
  it.each([
    ['[fail:generation_rejected]', 'JobFailedError', 'generation_rejected'],
    ['[canceled]', 'JobCanceledError', 'job_canceled'],
    ['[blocked]', 'JobBlockedError', 'job_blocked'],
  ])('for a job that ended with %s: of a %s', async (prompt, name, code) => {
    expect(await batch([prompt])).toEqual([{ status: 'failed', name, code }]);
    const [again] = await batch([prompt]);
    expect(again).toMatchObject({ status: 'failed', code });
  });

  it('for a job that did not end in time', async () => {
    expect(await batch(['[stall]'], '--timeout', '300ms')).toEqual([
      { status: 'pending', name: 'WaitTimeoutError', code: 'timeout' },
    ]);
  });

  it('for a refusal, and for the rows that were not started after it', async () => {
    sandbox.faults.add({ match: CREATES, ...PAUSED });
    expect(await batch(['a fox', 'an owl'])).toEqual([
      { status: 'failed', name: 'ServerError', code: 'dispatch_disabled' },
      { status: 'not_started', name: 'GenError', code: 'batch_stopped' },
    ]);
  });

  it('for a row that would pass --max-tokens', async () => {
    const rows = await batch(['a fox', 'an owl'], '--max-tokens', '2');
    expect(rows.filter(({ status }) => status === 'not_started')).toEqual([
      { status: 'not_started', name: 'GenError', code: 'budget_exceeded' },
    ]);
  });
});

describe('the code of an error for programs', () => {
  const refusal = new NotFoundError('Gone.', { status: 404, code: 'upload_not_found' } as never);
  it.each([
    [refusal, 'upload_not_found'],
    [new UploadError('No.', { step: 'put', cause: refusal }), 'upload_not_found'],
    [new UploadError('No.', { step: 'prepare' }), 'upload_invalid'],
    [new ConnectionError('Cut.'), 'service_error'],
    [new ResponseError('No job.'), 'service_error'],
    [new TimeoutError('Late.'), 'timeout'],
    [new UsageError('--dest: no place.'), 'usage_error'],
    [new CommanderError(1, 'commander.unknownOption', 'No such flag.'), 'usage_error'],
    [new GenError('The store is away.'), 'client_error'],
    [new Error('A defect.'), 'internal_error'],
  ])('of %o is %s', (error, code) => {
    expect(errorDocument(error)).toMatchObject({ code });
  });
});
