// The four commands that make a job: their flags, and the params that the flags stand for.
import { Command } from 'commander';
import { DEFAULT_VIDEO_MODEL, MODELS, ratiosOf } from '../../catalog.js';
import type { Fields } from '../../schemas/envelope.js';
import type { JobCall } from '../../schemas/job.js';
import { addJobFlags, collect, doing, type JobFlags, type OpenSession, parseNumber, withExamples } from '../command.js';
import { UsageError } from '../errors.js';
import { type ReferenceSlot, slotOf } from '../references.js';
import { runJobCommand } from '../run-job.js';

/** The flags of the four commands; none of them has all. */
interface CreateFlags extends JobFlags {
  readonly model?: string;
  readonly mode?: string;
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

/** What a command line asks for. */
interface Asked {
  readonly params: Fields;
  readonly references: readonly ReferenceSlot[];
}

/** Gives a command the flags of every job, and has it make the job of a call. */
function making(
  command: Command,
  { open, call }: { readonly open: OpenSession; readonly call: JobCall },
  asked: (flags: CreateFlags, words: readonly string[]) => Asked,
): Command {
  return doing<CreateFlags>(addJobFlags(command), open, async (session, words, flags) => {
    // A missing base URL is reported first.
    session.client();
    await runJobCommand(session, { call, ...asked(flags, words) }, flags);
  });
}

/** `gen-client video`. */
export function videoCommand(open: OpenSession): Command {
  const command = new Command('video')
    .description('Make a video from a prompt. Local files are uploaded on the way.')
    .argument('<prompt>', 'subject, action, camera move, light, style')
    .option('-m, --model <alias>', 'see "gen-client models" (default: the service\'s, svc-video-fast)')
    .option('-d, --duration <seconds>', "one of the model's durations", parseNumber)
    .option('-r, --ratio <ratio>', `aspect ratio: ${ratiosOf(MODELS[DEFAULT_VIDEO_MODEL]).join(', ')}`)
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
  withExamples(command, [
    'video "a fox at dawn" --model svc-video-pro --duration 5 --ratio 16:9 --image fox.png --out fox.mp4',
    'video "the sun sets" --first-frame start.png --last-frame end.png --out .',
    'video "a fox at dawn" --no-wait --json | jq -r .job.id',
    'video "a fox at dawn" --idempotency-key order-17 --out fox.mp4   # again: the same job',
  ]);
  return making(command, { open, call: 'videos' }, (flags, [prompt]) => ({
    params: {
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
    },
    references: [
      slotOf(flags.image, 'reference_image_urls', 'reference_image_upload_ids'),
      slotOf(flags.clip, 'reference_video_urls', 'reference_video_upload_ids'),
      slotOf(flags.sound, 'reference_audio_urls', 'reference_audio_upload_ids'),
      slotOf(flags.firstFrame, 'first_frame_url', 'first_frame_upload_id'),
      slotOf(flags.lastFrame, 'last_frame_url', 'last_frame_upload_id'),
    ],
  }));
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
  withExamples(command, [
    'image "a fox, woodcut" --model svc-image-pro --ratio 3:4 --resolution high --out fox.png',
    'image "the same fox, asleep" --image fox.png --out .',
  ]);
  return making(command, { open, call: 'images' }, ({ model, ratio, resolution, ...flags }, [prompt]) => ({
    params: { prompt, model, ratio, resolution, character_ids: flags.character, watermark: flags.watermark },
    references: [slotOf(flags.image, 'reference_image_urls', 'reference_upload_ids')],
  }));
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
  withExamples(command, [
    'edit clip.mp4 "make it snow" --out snow.mp4',
    'edit clip.mp4 "as a watercolour" --mode restyle --model svc-video-pro --resolution 1080p --out .',
  ]);
  return making(
    command,
    { open, call: 'videoEdits' },
    ({ model, mode, duration, ...flags }, [source = '', prompt]) => ({
      params: {
        model,
        prompt,
        edit_mode: mode,
        duration,
        ratio: flags.ratio,
        resolution: flags.resolution,
        generate_audio: flags.audio,
      },
      references: [
        slotOf(source, 'video', 'source_video_upload_id'),
        slotOf(flags.image, 'reference_images', 'reference_image_upload_ids'),
      ],
    }),
  );
}

/** `gen-client character create`. */
export function characterImageCommand(open: OpenSession): Command {
  const command = new Command('create')
    .description('Make a one-off character image.')
    .argument('<name>', "the character's name")
    .argument('<prompt>', 'hairstyle, wardrobe, pose, style, palette; no real person')
    .option('-r, --ratio <ratio>', 'aspect ratio')
    .option('--resolution <name>', 'standard or high')
    .option('-i, --image <source>', 'reference image: file or upload id; again for more', collect);
  withExamples(command, ['character create Mira "red hair, green coat, ink drawing" --out mira.png']);
  return making(command, { open, call: 'characters' }, ({ ratio, resolution, image }, [name, prompt]) => {
    const images = slotOf(image, '', 'reference_upload_ids');
    if (images.mentions.some(({ kind }) => kind === 'url'))
      throw new UsageError('--image: give a file or an upload id, not a URL.');
    return { params: { name, prompt, aspect_ratio: ratio, resolution }, references: [images] };
  });
}
