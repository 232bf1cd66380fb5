import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decode } from 'fast-png';
import { BufferSource, Input, MP4 } from 'mediabunny';
import { afterAll, describe, expect, it } from 'vitest';
import { MODELS } from '../../src/catalog.js';
import { dimensionsFor, type MediaSpec, renderMedia } from '../../src/sandbox/media/index.js';

const folder = mkdtempSync(join(tmpdir(), 'gen-media-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const hasFfmpeg = isInstalled('ffmpeg') && isInstalled('ffprobe');
if (!hasFfmpeg && process.env.CI) throw new Error('CI needs ffmpeg and ffprobe (apt-get install ffmpeg)');
if (!hasFfmpeg) console.warn('ffmpeg is not installed: decoding is checked by the parser only');

const video = (overrides: Partial<MediaSpec> = {}): MediaSpec => ({
  kind: 'video',
  width: 854,
  height: 480,
  durationS: 4,
  seed: 1,
  label: 'svc-video-fast',
  prompt: 'A fox at dawn',
  ...overrides,
});

describe('dimensions', () => {
  it.each([
    ['video', '16:9', '480p', 854, 480],
    ['video', '9:16', '720p', 720, 1280],
    ['video', '21:9', '1080p', 2520, 1080],
    ['video', '16:9', '4k', 3840, 2160],
    ['video', 'adaptive', undefined, 854, 480],
    ['image', '1:1', 'standard', 1024, 1024],
    ['image', '16:9', undefined, 1360, 765],
  ] as const)('of a %s with %s and %s are %d x %d', (kind, aspectRatio, resolution, width, height) => {
    expect(dimensionsFor({ kind, aspectRatio, resolution })).toEqual({ width, height });
  });

  it('of an image have the exact ratio for every model and ratio in the catalog', () => {
    for (const model of Object.values(MODELS)) {
      if (model.kind !== 'image') continue;
      for (const aspectRatio of model.aspectRatios) {
        const [across, down] = aspectRatio.split(':').map(Number) as [number, number];
        const { width, height } = dimensionsFor({ kind: 'image', aspectRatio });
        expect(width * down).toBe(height * across);
      }
    }
  });
});

describe('an image', () => {
  it('is a PNG with the requested size and the prompt', () => {
    const size = dimensionsFor({ kind: 'image', aspectRatio: '3:4', resolution: 'high' });
    const image = decode(renderMedia({ kind: 'image', ...size, seed: 3, label: 'svc-image-pro', prompt: 'A fox 🦊' }));
    expect([image.width, image.height]).toEqual([size.width, size.height]);
    expect(image.text).toEqual({ Comment: 'svc-image-pro\nA fox ?' });
  });
});

describe('a video', () => {
  it.each([
    dimensionsFor({ kind: 'video', aspectRatio: '9:16', resolution: '1080p' }),
    { prompt: '' },
    { prompt: '\u0000\u001b[31m 狐狸 🦊 \ud800' },
    { prompt: 'x'.repeat(20_000), label: 'y'.repeat(500) },
    { width: 16, height: 16 },
    { width: 4096, height: 512 },
    { seed: -5 },
    { seed: 2 ** 40 },
  ])('has two H.264 key frames per second according to an independent demuxer: %j', async (overrides) => {
    const spec = video({ durationS: 6, ...overrides });
    const input = new Input({ source: new BufferSource(renderMedia(spec)), formats: [MP4] });
    const track = await input.getPrimaryVideoTrack();
    expect([track?.codec, track?.displayWidth, track?.displayHeight]).toEqual(['avc', spec.width, spec.height]);
    expect((await track?.getDecoderConfig())?.codec).toMatch(/^avc1\.42c0/);
    expect(await track?.computePacketStats()).toMatchObject({ packetCount: 12, averagePacketRate: 2 });
    expect(await input.computeDuration()).toBe(6);
  });

  it('has the same bytes for the same input, and different ones for another seed, model, or prompt', () => {
    const bytes = renderMedia(video());
    expect(renderMedia(video())).toEqual(bytes);
    for (const overrides of [{ seed: 2 }, { label: 'svc-video-pro' }, { prompt: 'A hare' }]) {
      expect(renderMedia(video(overrides))).not.toEqual(bytes);
    }
  });
});

describe.skipIf(!hasFfmpeg)('decoded by ffmpeg', () => {
  it.each([
    ['16:9', '480p', 4],
    ['9:16', '720p', 30],
    ['1:1', '1080p', 4],
    ['21:9', '4k', 4],
  ])(
    'a video with %s, %s, and %i s has its size, duration, and format, without errors',
    async (aspectRatio, resolution, seconds) => {
      const size = dimensionsFor({ kind: 'video', aspectRatio, resolution });
      const path = save(`${size.width}x${size.height}.mp4`, renderMedia(video({ ...size, durationS: seconds })));
      const probe = await run('ffprobe', ['-v', 'error', '-show_streams', '-of', 'json', path]);
      const [stream] = JSON.parse(probe.stdout.toString()).streams;
      expect(stream).toMatchObject({
        codec_name: 'h264',
        profile: 'Constrained Baseline',
        pix_fmt: 'yuv420p',
        is_avc: 'true',
        ...size,
        nb_frames: String(2 * seconds),
        duration: `${seconds}.000000`,
        color_space: 'bt709',
      });
      const decoded = await run('ffmpeg', ['-v', 'warning', '-xerror', '-i', path, '-f', 'null', '-']);
      expect(decoded.stderr.toString()).toBe('');
    },
  );
});

function save(name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

function run(command: string, args: readonly string[]): Promise<{ stdout: Buffer; stderr: Buffer }> {
  return promisify(execFile)(command, args, { encoding: 'buffer', maxBuffer: 2 ** 28 });
}

function isInstalled(command: string): boolean {
  try {
    execFileSync(command, ['-version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
