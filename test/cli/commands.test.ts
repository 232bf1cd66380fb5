import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ClientOptions } from '../../src/index.js';
import { renderMedia } from '../../src/sandbox/media/index.js';
import { secondsOf } from '../support/mp4.js';
import { cliOnSandbox, FOX_PNG, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const mp4 = renderMedia({ kind: 'video', width: 320, height: 180, durationS: 1, seed: 1, label: 'clip', prompt: '' });
const fixture = cliOnSandbox({ 'fox.png': FOX_PNG, 'clip.mp4': mp4 });
const { sandbox, cli, pathOf, createVideo } = fixture;
const posts = (path: string) =>
  sandbox.requests.filter((request) => request.method === 'POST' && request.path === path);
const lastBody = (path: string) => JSON.parse(posts(path).at(-1)?.body ?? '{}');

describe('video', () => {
  it('uploads a local image, waits, and saves the file', async () => {
    const flags = '--model svc-video-pro --duration 5 --ratio 16:9 --image fox.png --out fox.mp4'.split(' ');
    const { code, stdout, stderr } = await cli('video', 'a fox at dawn', ...flags, ...QUICK);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(secondsOf(readFileSync(pathOf('fox.mp4')))).toBe(5);
    expect(stdout).toMatch(/^job_\w+ {2}completed {2}svc-video-pro\n25 tokens charged\n.*fox\.mp4 {2}\d+\.\d\d MB\n$/);
    expect(stderr).toMatch(/Uploading fox\.png: 100% of [\d.]+ MB\nJob job_\w+ accepted, 25 tokens reserved\.\n/);
    expect(lastBody('/v1/videos')).toEqual({
      prompt: 'a fox at dawn',
      model: 'svc-video-pro',
      duration: 5,
      aspect_ratio: '16:9',
      reference_image_upload_ids: [expect.stringMatching(/^upl_/)],
    });
  });

  it("sends every flag under the service's name", async () => {
    const args = ['--clip', 'https://x.test/a.mp4', '--sound', 'https://x.test/a.mp3', '--no-audio', '--seed', '7'];
    const flags = ['--strict', '--watermark', '--camera-fixed', '--resolution', '480p', '--no-wait'];
    const { code, stdout } = await cli('video', 'a', ...args, ...flags, '--webhook', 'https://x.test/hook');
    expect(code).toBe(0);
    expect(stdout).toMatch(/Continue with: gen-client wait job_\w+\n$/);
    expect(lastBody('/v1/videos')).toEqual({
      prompt: 'a',
      reference_video_urls: ['https://x.test/a.mp4'],
      reference_audio_urls: ['https://x.test/a.mp3'],
      generate_audio: false,
      seed: 7,
      video_reference_mode: 'strict',
      watermark: true,
      camera_fixed: true,
      resolution: '480p',
      webhook_url: 'https://x.test/hook',
    });
  });

  it('accepts frames as files or URLs', async () => {
    await cli('video', 'a', '--first-frame', 'fox.png', '--last-frame', 'https://x.test/z.png', '--no-wait');
    expect(lastBody('/v1/videos')).toEqual({
      prompt: 'a',
      first_frame_upload_id: expect.stringMatching(/^upl_/),
      last_frame_url: 'https://x.test/z.png',
    });
  });

  it('prints a single JSON document with --json', async () => {
    const { code, stdout, stderr } = await cli('video', 'a fox', '--json', '--out', '.', ...QUICK);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trim().split('\n')).toHaveLength(1);
    const { job, file, idempotencyKey, warnings } = JSON.parse(stdout);
    expect(job).toMatchObject({ status: 'completed', modelId: 'svc-video-fast' });
    expect(readdirSync(fixture.folder)).toContain(`${job.id}.mp4`);
    expect(file).toMatchObject({ contentType: 'video/mp4', sizeBytes: expect.any(Number) });
    expect([typeof idempotencyKey, warnings]).toEqual(['string', []]);
  });
});

describe('other commands', () => {
  it('image creates an image', async () => {
    const flags = '-m svc-image-pro -r 21:9 -i fox.png -o out.png'.split(' ');
    const { code } = await cli('image', 'a fox', ...flags, ...QUICK);
    expect(code).toBe(0);
    expect(readFileSync(pathOf('out.png')).subarray(1, 4).toString()).toBe('PNG');
    expect(lastBody('/v1/images')).toMatchObject({ ratio: '21:9', reference_upload_ids: [expect.any(String)] });
  });

  it('edit uploads a clip and edits it', async () => {
    const args = ['clip.mp4', 'make it snow', '--mode', 'restyle', '-o', 'snow.mp4'];
    const { code, stderr } = await cli('edit', ...args, ...QUICK);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(lastBody('/v1/uploads').upload_type).toBe('VIDEO');
    expect(lastBody('/v1/video-edits')).toEqual({
      model: 'svc-video-fast',
      prompt: 'make it snow',
      edit_mode: 'restyle',
      source_video_upload_id: expect.stringMatching(/^upl_/),
    });
    expect(existsSync(pathOf('snow.mp4'))).toBe(true);
  });

  it('character registers, lists, gets, creates, and deletes', async () => {
    const registered = JSON.parse((await cli('character', 'register', 'Mira', 'fox.png', '--json')).stdout);
    const id = registered.character.character_id;
    expect((await cli('character', 'list')).stdout).toContain(id);
    expect(JSON.parse((await cli('character', 'get', id, '--json')).stdout).character.character_id).toBe(id);
    const created = await cli('character', 'create', 'Mira', 'red hair, ink drawing', '-o', 'mira.png', ...QUICK);
    expect(created.code).toBe(0);
    expect((await cli('character', 'delete', id)).stdout).toBe(`${id}  deleted\n`);
    expect((await cli('character', 'get', id)).code).toBe(2);
    await cli('character', 'register', 'Mira', 'fox.png');
    const deleted = JSON.parse((await cli('character', 'delete', 'mira', '--json')).stdout);
    const response = { character_id: expect.stringMatching(/^char_/), deleted: true };
    expect(deleted).toEqual({ deleted: 'mira', response });
  });

  it('upload prints IDs that other commands accept', async () => {
    const { stdout } = await cli('upload', 'fox.png', 'clip.mp4');
    const [line = ''] = stdout.split('\n');
    expect(line).toMatch(/^upl_\w+ {2}fox\.png$/);
    const id = line.split(' ')[0] ?? '';
    await cli('image', 'a', '-i', id, '--no-wait');
    expect(lastBody('/v1/images').reference_upload_ids).toEqual([id]);
  });

  it("job, wait, and download accept another run's job", async () => {
    const id = await createVideo();
    expect((await cli('job', id)).stdout).toMatch(new RegExp(`^${id} {2}(processing|completed)`));
    const waited = await cli('wait', id, ...QUICK);
    expect(waited.stdout).toContain(`gen-client download ${id}\n`);
    expect((await cli('download', id)).code).toBe(0);
    expect(secondsOf(readFileSync(pathOf(`${id}.mp4`)))).toBe(5);
    expect((await cli('download', id, '--out', `${id}.mp4`, '--force')).code).toBe(0);
  });

  it('wait accepts several jobs, saves completed ones, and fails for others', async () => {
    const ids = [await createVideo(), await createVideo('an owl [fail:generation_rejected]'), await createVideo()];
    mkdirSync(pathOf('all'));
    const { code, stdout } = await cli('wait', ...ids, '--out', 'all/', '--json', ...QUICK);
    expect(code).toBe(1);
    const statuses = JSON.parse(stdout).jobs.map(({ job }: { job: { status: string } }) => job.status);
    expect(statuses.sort()).toEqual(['completed', 'completed', 'failed']);
    expect(readdirSync(pathOf('all')).sort()).toEqual([`${ids[0]}.mp4`, `${ids[2]}.mp4`].sort());
  });

  it('models requires no API key', async () => {
    const { code, stdout } = await runCli(['models', '--base-url', sandbox.baseUrl], { ...fixture.options, env: {} });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^svc-video-pro +video {2}seconds 4 5 6 8 10 12 15 {2}sizes 480p 720p 1080p 4k$/m);
  });
});

describe('a wait', () => {
  it.each([
    [1_999, 'limit', ''],
    [4_200, 'limit', 'Waiting 5 s for the videos.create rate limit.\n'],
    [4_200, 'pause', 'Waiting 5 s, as the service requested.\n'],
  ] as const)('of %i ms because of a %s is printed as %j', async (waitMs, reason, expected) => {
    const createClient = (options: ClientOptions) => {
      options.hooks?.onWait?.({ callId: 'call_1', limit: 'videos.create', waitMs, queued: 1, reason });
      return fixture.options.createClient(options);
    };
    const { code, stderr } = await runCli(['models'], { ...fixture.options, createClient });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expected });
  });
});
