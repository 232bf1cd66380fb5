import { Command } from 'commander';
import { checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import type { ImageParams } from '../../schemas/params.js';
import type { VideoEditParams, VideoParams } from '../../schemas/video-params.js';
import { addJobFlags, collect, doing, type JobFlags, type OpenSession, parseNumber, withExamples } from '../command.js';
import { mentionOf, type ReferenceSlot } from '../references.js';
import { runJobCommand } from '../run-job.js';

interface VideoFlags extends JobFlags {
  readonly model?: string;
  readonly duration?: number;
  readonly ratio?: string;
  readonly resolution?: string;
  readonly image?: readonly string[];
  readonly firstFrame?: string;
  readonly lastFrame?: string;
  readonly clip?: readonly string[];
  readonly sound?: readonly string[];
  readonly character?: readonly string[];
  readonly audio?: boolean;
  readonly seed?: number;
  readonly cameraFixed?: boolean;
  readonly watermark?: boolean;
  readonly strict?: boolean;
}

/** `gen-client video`. */
export function videoCommand(open: OpenSession): Command {
  const command = new Command('video')
    .description('Make a video from a prompt. Local files are uploaded on the way.')
    .argument('<prompt>', 'subject, action, camera move, light, style')
    .option('-m, --model <alias>', 'see "gen-client models" (default: the service\'s, svc-video-fast)')
    .option('-d, --duration <seconds>', "one of the model's durations", parseNumber)
    .option('-r, --ratio <ratio>', 'aspect ratio: 16:9, 9:16, 1:1, 4:3, 3:4, 21:9')
    .option('--resolution <name>', '480p, 720p, 1080p or 4k, where the model offers it')
    .option('-i, --image <source>', 'reference image: file, URL or upload id; again for more', collect)
    .option('--first-frame <source>', 'image the video starts with')
    .option('--last-frame <source>', 'image the video ends with')
    .option('--clip <source>', 'clip that guides motion or camera; again for more', collect)
    .option('--sound <source>', 'audio that guides voice, music or timing; again for more', collect)
    .option('--character <id>', 'registered character, by id or slug; again for more', collect)
    .option('--audio', 'with sound, on models that support it')
    .option('--no-audio', 'without sound')
    .option('--seed <number>', 'fixes the seed for a similar result', parseNumber)
    .option('--camera-fixed', 'keep the camera still')
    .option('--watermark', 'with a watermark')
    .option('--strict', 'fail rather than leave out a clip that cannot be used');
  withExamples(addJobFlags(command), [
    'video "a fox at dawn" --model svc-video-pro --duration 5 --ratio 16:9 --image fox.png --out fox.mp4',
    'video "the sun sets" --first-frame start.png --last-frame end.png --out .',
    'video "a fox at dawn" --no-wait --json | jq -r .job.id',
    'video "a fox at dawn" --idempotency-key order-17 --out fox.mp4   # again: the same job',
  ]);
  return doing<VideoFlags>(command, open, async (session, [prompt], flags) => {
    const { videos } = session.client();
    await runJobCommand(
      session,
      {
        params: paramsFromFlags(prompt, flags),
        references: references(flags),
        check: (params) => checkVideo(params, () => {}),
        create: (params: VideoParams, options) => videos.create(params, options),
        createAndWait: (params: VideoParams, options) => videos.createAndWait(params, options),
      },
      flags,
    );
  });
}

function paramsFromFlags(prompt: string | undefined, flags: VideoFlags): Record<string, unknown> {
  return {
    prompt,
    model: flags.model,
    duration: flags.duration,
    aspect_ratio: flags.ratio,
    resolution: flags.resolution,
    character_ids: flags.character,
    generate_audio: flags.audio,
    seed: flags.seed,
    camera_fixed: flags.cameraFixed,
    watermark: flags.watermark,
    video_reference_mode: flags.strict ? 'strict' : undefined,
  };
}

function references(flags: VideoFlags): ReferenceSlot[] {
  const many = (values: readonly string[] | undefined, name: 'image' | 'video' | 'audio'): ReferenceSlot => ({
    mentions: (values ?? []).map(mentionOf),
    urls: `reference_${name}_urls`,
    uploads: `reference_${name}_upload_ids`,
  });
  const frame = (value: string | undefined, name: string): ReferenceSlot => ({
    mentions: value === undefined ? [] : [mentionOf(value)],
    urls: `${name}_frame_url`,
    uploads: `${name}_frame_upload_id`,
    isSingle: true,
  });
  return [
    many(flags.image, 'image'),
    many(flags.clip, 'video'),
    many(flags.sound, 'audio'),
    frame(flags.firstFrame, 'first'),
    frame(flags.lastFrame, 'last'),
  ];
}

interface ImageFlags extends JobFlags {
  readonly model?: string;
  readonly ratio?: string;
  readonly resolution?: string;
  readonly image?: readonly string[];
  readonly character?: readonly string[];
  readonly watermark?: boolean;
}

/** `gen-client image`. */
export function imageCommand(open: OpenSession): Command {
  const command = new Command('image')
    .description('Make an image from a prompt. Local files are uploaded on the way.')
    .argument('<prompt>', 'what the image shows')
    .option('-m, --model <alias>', 'see "gen-client models" (default: the service chooses)')
    .option('-r, --ratio <ratio>', "one of the model's aspect ratios")
    .option('--resolution <name>', 'standard or high, where the model offers it')
    .option('-i, --image <source>', 'reference image: file, URL or upload id; again for more', collect)
    .option('--character <id>', 'registered character, by id or slug; again for more', collect)
    .option('--watermark', 'with a watermark');
  withExamples(addJobFlags(command), [
    'image "a fox, woodcut" --model svc-image-pro --ratio 3:4 --resolution high --out fox.png',
    'image "the same fox, asleep" --image fox.png --out .',
  ]);
  return doing<ImageFlags>(command, open, async (session, [prompt], flags) => {
    const { images } = session.client();
    const { model, ratio, resolution, character, watermark } = flags;
    await runJobCommand(
      session,
      {
        params: { prompt, model, ratio, resolution, character_ids: character, watermark },
        references: [
          {
            mentions: (flags.image ?? []).map(mentionOf),
            urls: 'reference_image_urls',
            uploads: 'reference_upload_ids',
          },
        ],
        check: (params) => checkImage(params, () => {}),
        create: (params: ImageParams, options) => images.create(params, options),
        createAndWait: (params: ImageParams, options) => images.createAndWait(params, options),
      },
      flags,
    );
  });
}

interface EditFlags extends JobFlags {
  readonly model: string;
  readonly mode?: string;
  readonly duration?: number;
  readonly ratio?: string;
  readonly resolution?: string;
  readonly image?: readonly string[];
  readonly audio?: boolean;
}

/** `gen-client edit`. */
export function editCommand(open: OpenSession): Command {
  const command = new Command('edit')
    .description('Transform, restyle or extend a video. A local file is uploaded on the way.')
    .argument('<source>', 'the video: file, URL or upload id')
    .argument('<prompt>', 'what to change, and what to keep')
    .option('-m, --model <alias>', 'svc-video-pro, svc-video-fast or svc-video-mini', 'svc-video-fast')
    .option('--mode <mode>', 'transform, restyle or extend')
    .option('-d, --duration <seconds>', "one of the model's durations", parseNumber)
    .option('-r, --ratio <ratio>', "aspect ratio (default: the source's)")
    .option('--resolution <name>', '480p, 720p, 1080p or 4k, where the model offers it')
    .option('-i, --image <source>', 'reference image: file, URL or upload id; again for more', collect)
    .option('--audio', 'with sound')
    .option('--no-audio', 'without sound');
  withExamples(addJobFlags(command), [
    'edit clip.mp4 "make it snow" --out snow.mp4',
    'edit clip.mp4 "as a watercolour" --mode restyle --model svc-video-pro --resolution 1080p --out .',
  ]);
  return doing<EditFlags>(command, open, async (session, [source = '', prompt], flags) => {
    const { videoEdits } = session.client();
    const { model, mode, duration, ratio, resolution, audio } = flags;
    await runJobCommand(
      session,
      {
        params: { model, prompt, edit_mode: mode, duration, ratio, resolution, generate_audio: audio },
        references: [
          {
            mentions: [mentionOf(source)],
            urls: 'video',
            uploads: 'source_video_upload_id',
            isSingle: true,
          },
          {
            mentions: (flags.image ?? []).map(mentionOf),
            urls: 'reference_images',
            uploads: 'reference_image_upload_ids',
          },
        ],
        check: (params) => checkVideoEdit(params, () => {}),
        create: (params: VideoEditParams, options) => videoEdits.create(params, options),
        createAndWait: (params: VideoEditParams, options) => videoEdits.createAndWait(params, options),
      },
      flags,
    );
  });
}
