import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inFlags } from '../../src/cli/errors.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000200000002000802', 'hex');
const place = cliOnSandbox({ 'fox.png': png, 'notes.xyz': 'just words', clip: png });
const { sandbox, cli } = place;
/** What only a program can say. */
const LIBRARY_WORDS = /overwrite: true|mimeType|uploadType|timeoutMs|apiKey|idempotencyKey|GenClient|baseUrl|maxRetr/;
const paths = () => sandbox.requests.map(({ method, path }) => `${method} ${path.replace(/upl_\w+/, 'ID')}`);

describe('errors are in the words of the command line', () => {
  it.each([
    [['upload', 'notes.xyz'], {}, '--mime-type'],
    [['job', 'job_1'], { GEN_API_KEY: '' }, 'The API key is missing. Set GEN_API_KEY.'],
    [['job', 'job_1'], { GEN_BASE_URL: 'ftp://x' }, 'GEN_BASE_URL'],
    [['job', 'job_1'], { GEN_API_KEY: 'Bearer x' }, 'GEN_API_KEY'],
    [['video', 'a [slow:60s]', '--timeout', '300ms', '--poll', '100ms'], {}, 'pass a longer --timeout'],
  ])('%j under %j: %s', async (words, env, wanted) => {
    const { code, stderr } = await runCli(words, { ...place.options, env: { ...place.env, ...env } });
    expect(code).not.toBe(0);
    expect(stderr).toContain(wanted);
    expect(stderr).not.toMatch(LIBRARY_WORDS);
  });

  it.each([
    'The key is missing. Pass { apiKey } to GenClient or set GEN_API_KEY.',
    '"x" is already there. Pass overwrite: true to replace it.',
    'idempotencyKey must be a string. idempotencyKeyFrom() makes one from your own ids.',
    'the response was not complete within 60000 ms (timeoutMs)',
    'no bytes moved and no response came for 900 ms (timeoutMs plus time for buffered bytes)',
    'the job goes on: wait for it again, or raise timeoutMs.',
    'Nothing tells the type of the file. Pass mimeType, for example "video/mp4".',
    '"a/b" is not the type of an image, a video or audio. Pass the right mimeType, or uploadType.',
    'Set baseUrl to the address that it leads to, so that the API key is sent nowhere else.',
  ])('%s', (message) => {
    expect(inFlags(message)).not.toMatch(LIBRARY_WORDS);
  });
});

describe('upload', () => {
  it('takes the type, the kind and the name where the file does not tell them (once it could not be uploaded at all)', async () => {
    const flags = ['--mime-type', 'video/x-odd', '--type', 'VIDEO', '--name', 'odd.mov'];
    expect((await cli('upload', 'notes.xyz', ...flags)).code).toBe(0);
    const { body } = sandbox.requests.find(({ path }) => path === '/v1/uploads') ?? {};
    expect(JSON.parse(body ?? '{}')).toMatchObject({
      mime_type: 'video/x-odd',
      upload_type: 'VIDEO',
      file_name: 'odd.mov',
    });
    expect((await cli('upload', 'fox.png', '--type', 'PICTURE')).stderr).toContain('Allowed choices are IMAGE');
  });

  it('keeps the ids of what was uploaded when a later file fails', async () => {
    writeFileSync(join(place.folder, 'second.png'), png);
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads', nth: 2 }, status: 403, code: 'scope_missing' });
    const { code, stdout, stderr } = await cli('upload', 'fox.png', 'second.png');
    expect({ code, stdout }).toEqual({ code: 3, stdout: expect.stringMatching(/^upl_\w+ {2}fox\.png\n$/) });
    expect(stderr).toContain('second.png');
  });
});

describe('files on the way to a job', () => {
  it.each([
    [
      ['edit', 'fox.png', 'make it snow'],
      '"fox.png": source_video_upload_id: a video is required, and this file is image/png.',
    ],
    [
      ['video', 'a', '--sound', 'fox.png'],
      '"fox.png": reference_audio_upload_ids[0]: an audio file is required, and this file is image/png.',
    ],
    [['video', 'a', '--image', 'fox.png', '--image', 'notes.xyz'], '"notes.xyz": '],
  ])('%j is refused before a byte moves', async (words, message) => {
    const { code, stderr } = await cli(...words);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(sandbox.requests).toEqual([]);
  });

  it('are deleted when the create is refused (once they stayed on the service)', async () => {
    const { code } = await cli('video', 'a', '--image', 'fox.png', '--webhook', 'http://8.8.8.8/hook');
    expect(code).toBe(2);
    expect(paths()).toContain('DELETE /v1/uploads/ID');
  });

  it('stay when it is not known whether a job was made', async () => {
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true, times: 9 });
    expect((await cli('video', 'a', '--image', 'fox.png')).code).toBe(4);
    expect(paths()).not.toContain('DELETE /v1/uploads/ID');
  });
});

it('a refused connection is not said to have made a job perhaps', async () => {
  const closed = await createSandbox().listen();
  await closed.close();
  for (const url of [closed.url, 'http://127.0.0.1:9']) {
    const { code, stderr } = await runCli(['video', 'a'], { env: { ...place.env, GEN_BASE_URL: url } });
    expect(code).toBe(4);
    expect(stderr).toContain('Nothing was sent');
    expect(stderr).not.toContain('not known whether');
  }
});
