// CLI messages refer to flags, never to the library's options or functions.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { messageOf } from '../../src/cli/errors.js';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const fixture = cliOnSandbox({ 'clip.bin': 'not media' });
const { sandbox, cli, pathOf, createVideo } = fixture;
const LIBRARY =
  /waitForJob|fromPath|option extraBody|redisStore|fileStore|overwrite: true|createBudget|timeoutMs|idempotencyKey|maxRetries/;

it('download of a running job suggests waiting for it', async () => {
  const id = await createVideo('a [slow:60s]');
  const { code, stderr } = await cli('download', id, '--out', 'a.mp4');
  expect(code).toBe(2);
  expect(stderr).toContain(`Wait for it with: gen-client wait ${id}\n`);
  expect(stderr).not.toMatch(LIBRARY);
});

it("download of a failed job doesn't suggest downloading it", async () => {
  const { stdout } = await cli('image', 'a [fail:generation_rejected]', '--json', ...QUICK);
  const { code, stderr } = await cli('download', JSON.parse(stdout).job.id, '--out', 'a.png');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('has no file') });
  expect(stderr).not.toContain('gen-client download');
});

it("an error for an unknown job doesn't claim that the job continues", async () => {
  const { code, stderr } = await cli('wait', 'job_nope');
  expect(code).toBe(2);
  expect(stderr).not.toMatch(/continues|gen-client wait/);
});

it("a file streamed to stdout isn't suggested for download", async () => {
  const { code, stderr } = await cli('image', 'a fox', '--out', '-', ...QUICK);
  expect(code).toBe(0);
  expect(stderr).not.toContain('Save it');
});

it('a connection error mentions the environment variable for proxies', async () => {
  const env = { ...fixture.env, GEN_BASE_URL: 'http://127.0.0.1:9', HTTP_PROXY: 'http://127.0.0.1:9' };
  const { stderr } = await runCli(['models'], { env, cwd: fixture.folder });
  expect(stderr).toContain('HTTP_PROXY is set, but Node.js ignores it: set NODE_USE_ENV_PROXY=1, too.');
});

it('the suggested fix for a rejected row is to change it', async () => {
  writeFileSync(pathOf('p.jsonl'), '{"call":"images","params":{"prompt":"a fox"}}\n');
  sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, status: 422, code: 'invalid_request' });
  const { stderr } = await cli('batch', 'p.jsonl', '--out', 'out/');
  expect(stderr).toBe('Nothing was created for rejected rows. Change them, and run the command again.\n');
});

it.each([
  ['rows.jsonl', '{"prompt":"a fox","shiny":1}\n'],
  ['rows.csv', 'prompt,shiny\na fox,1\n'],
])('an unknown field of %s can be sent in extraBody', async (name, text) => {
  writeFileSync(pathOf(name), text);
  const { stderr } = await cli('batch', name, '--out', 'out/');
  expect(stderr).toContain('Remove it, or pass it in extraBody, as a JSON object.');
});

it('the error for a file name in an upload field suggests passing a path', async () => {
  const create = sandbox.client().images.create({ prompt: 'a fox', reference_upload_ids: ['fox.png'] });
  const message = messageOf(await create.catch((error: unknown) => error));
  expect(message).toContain('not a file name. Pass the path of a file');
  expect(message).not.toMatch(LIBRARY);
});

const ROWS = '{"call":"images","params":{"prompt":"a fox","colour":"red"}}\n';
it.each<[string, readonly string[]]>([
  ['an unknown field', ['batch', 'rows.jsonl', '--out', 'out/']],
  ['a file that is not a store', ['jobs', 'clip.bin']],
  ['a resumed file that is not a store', ['resume', 'clip.bin']],
  ['an existing output file', ['image', 'a fox', '--out', 'clip.bin']],
  ['a file that is not media', ['video', 'a fox', '--image', 'clip.bin']],
  ['an unsupported duration', ['video', 'a fox', '--duration', '7']],
  ['a reused idempotency key', ['image', 'a hare', '--idempotency-key', 'order-1', '--no-wait']],
  ['a wait that timed out', ['video', 'a [slow:60s]', '--timeout', '1s']],
])("%s is reported without the library's terms", async (_, args) => {
  writeFileSync(pathOf('rows.jsonl'), ROWS);
  await cli('image', 'a fox', '--idempotency-key', 'order-1', '--no-wait');
  const { code, stderr } = await cli(...args);
  expect(code).not.toBe(0);
  expect(stderr).not.toMatch(LIBRARY);
});
