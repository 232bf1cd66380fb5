// Commands that create a job. A table lists each command's arguments and flags, and the params that they set.
import { Command } from 'commander';
import { DEFAULT_VIDEO_MODEL, MODELS } from '../../index.js';
import {
  addJobFlags,
  collect,
  type JobFlags,
  type OpenSession,
  parseNumber,
  runCommand,
  withExamples,
} from '../command.js';
import { type CallName, paramsOf, type ReferenceFields, runJobCommand } from '../run-job.js';

/** An argument or a flag, the field that it sets, and a parser for its text or the value of a boolean flag. */
type Param = readonly [
  name: string,
  description: string,
  field: string | ReferenceFields,
  parse?: typeof parseNumber | typeof collect | 'strict' | undefined,
  fallback?: string,
];

interface CreateTable {
  readonly call: CallName;
  readonly args: readonly Param[];
  readonly flags: readonly Param[];
}

/** Adds arguments and flags to a command that creates a job. */
function addParams(command: Command, open: OpenSession, { call, args, flags }: CreateTable): Command {
  for (const [name, description] of args) command.argument(name, description);
  const options = flags.map(([name, description, field, parse, fallback]) => {
    const option = command.createOption(name, description).default(fallback);
    if (typeof parse === 'string') option.preset(parse);
    else if (parse) option.argParser<unknown>(parse as (text: string, previous: unknown) => unknown);
    command.addOption(option);
    return { name: option.attributeName(), field };
  });
  return runCommand<JobFlags & Readonly<Record<string, unknown>>>(
    addJobFlags(command),
    open,
    async (session, argValues, flagValues) => {
      // Report a missing base URL first.
      session.client();
      const params = paramsOf([
        ...args.map(([, , field], at) => [field, argValues[at]] as const),
        ...options.map(({ name, field }) => [field, flagValues[name]] as const),
      ]);
      await runJobCommand(session, { call, params }, flagValues);
    },
  );
}

const EDIT_MODELS = Object.entries(MODELS).flatMap(([alias, model]) =>
  'edits' in model && model.edits ? [alias] : [],
);
const IMAGE = 'reference image: file, URL, or upload ID; repeatable';
const DURATION: Param = ['-d, --duration <seconds>', "one of the model's durations", 'duration', parseNumber];
const RESOLUTION: Param = ['--resolution <name>', '480p, 720p, 1080p, or 4k, if the model supports it', 'resolution'];
const STANDARD_OR_HIGH: Param = ['--resolution <name>', 'standard or high, if the model supports it', 'resolution'];
const CHARACTER: Param = [
  '--character <id>',
  'registered character, by ID or slug; repeatable',
  'character_ids',
  collect,
];
const WATERMARK: Param = ['--watermark', 'with a watermark', 'watermark'];
const AUDIO: readonly Param[] = [
  ['--audio', 'with sound, on models that support it', 'generate_audio'],
  ['--no-audio', 'without sound', 'generate_audio'],
];

export function videoCommand(open: OpenSession): Command {
  const command = new Command('video').description(
    'Create a video from a prompt. Local files are uploaded automatically.',
  );
  withExamples(command, [
    'video "a fox at dawn" --model svc-video-pro --duration 5 --ratio 16:9 --image fox.png --out fox.mp4',
    'video "the sun sets" --first-frame start.png --last-frame end.png --out .',
    'video "a fox at dawn" --no-wait --json | jq -r .job.id',
    'video "a fox at dawn" --idempotency-key order-17 --out fox.mp4   # again: the same job',
  ]);
  const images = { uploads: 'reference_image_upload_ids', urls: 'reference_image_urls' };
  const clips = { uploads: 'reference_video_upload_ids', urls: 'reference_video_urls' };
  const sounds = { uploads: 'reference_audio_upload_ids', urls: 'reference_audio_urls' };
  const firstFrame = { uploads: 'first_frame_upload_id', urls: 'first_frame_url' };
  const lastFrame = { uploads: 'last_frame_upload_id', urls: 'last_frame_url' };
  return addParams(command, open, {
    call: 'videos',
    args: [['<prompt>', 'subject, action, camera move, light, style', 'prompt']],
    flags: [
      ['-m, --model <alias>', 'see "gen-client models" (default: the service\'s, svc-video-fast)', 'model'],
      DURATION,
      ['-r, --ratio <ratio>', `aspect ratio: ${MODELS[DEFAULT_VIDEO_MODEL].exampleRatios.join(', ')}`, 'aspect_ratio'],
      RESOLUTION,
      ['-i, --image <source>', IMAGE, images, collect],
      ['--first-frame <source>', 'image the video starts with', firstFrame],
      ['--last-frame <source>', 'image the video ends with', lastFrame],
      ['--clip <source>', 'clip that guides motion or camera; repeatable', clips, collect],
      ['--sound <source>', 'audio that guides voice, music, or timing; repeatable', sounds, collect],
      CHARACTER,
      ...AUDIO,
      ['--seed <number>', 'fixes the seed for a similar result', 'seed', parseNumber],
      ['--camera-fixed', 'keep the camera still', 'camera_fixed'],
      WATERMARK,
      ['--strict', 'fail instead of omitting a clip that cannot be used', 'video_reference_mode', 'strict'],
    ],
  });
}

export function imageCommand(open: OpenSession): Command {
  const command = new Command('image').description(
    'Create an image from a prompt. Local files are uploaded automatically.',
  );
  withExamples(command, [
    'image "a fox, woodcut" --model svc-image-pro --ratio 3:4 --resolution high --out fox.png',
    'image "the same fox, asleep" --image fox.png --out .',
  ]);
  return addParams(command, open, {
    call: 'images',
    args: [['<prompt>', 'what the image shows', 'prompt']],
    flags: [
      ['-m, --model <alias>', 'see "gen-client models" (default: the service chooses)', 'model'],
      ['-r, --ratio <ratio>', "one of the model's aspect ratios", 'ratio'],
      STANDARD_OR_HIGH,
      ['-i, --image <source>', IMAGE, { uploads: 'reference_upload_ids', urls: 'reference_image_urls' }, collect],
      CHARACTER,
      WATERMARK,
    ],
  });
}

export function editCommand(open: OpenSession): Command {
  const command = new Command('edit').description(
    'Transform, restyle, or extend a video. A local file is uploaded automatically.',
  );
  withExamples(command, [
    'edit clip.mp4 "make it snow" --out snow.mp4',
    'edit clip.mp4 "as a watercolor" --mode restyle --model svc-video-pro --resolution 1080p --out .',
  ]);
  return addParams(command, open, {
    call: 'videoEdits',
    args: [
      ['<source>', 'the video: file, URL, or upload ID', { uploads: 'source_video_upload_id', urls: 'video' }],
      ['<prompt>', 'what to change, and what to preserve', 'prompt'],
    ],
    flags: [
      ['-m, --model <alias>', EDIT_MODELS.join(', '), 'model', undefined, DEFAULT_VIDEO_MODEL],
      ['--mode <mode>', 'transform, restyle, or extend', 'edit_mode'],
      DURATION,
      ['-r, --ratio <ratio>', "aspect ratio (default: the source's)", 'ratio'],
      RESOLUTION,
      ['-i, --image <source>', IMAGE, { uploads: 'reference_image_upload_ids', urls: 'reference_images' }, collect],
      ...AUDIO,
    ],
  });
}

export function characterImageCommand(open: OpenSession): Command {
  const command = new Command('create').description('Create a one-off character image.');
  withExamples(command, ['character create Mira "red hair, green coat, ink drawing" --out mira.png']);
  return addParams(command, open, {
    call: 'characters',
    args: [
      ['<name>', "the character's name", 'name'],
      ['<prompt>', 'hairstyle, wardrobe, pose, style, palette; no real person', 'prompt'],
    ],
    flags: [
      ['-r, --ratio <ratio>', 'aspect ratio', 'aspect_ratio'],
      STANDARD_OR_HIGH,
      ['-i, --image <source>', IMAGE.replace(', URL', ''), { uploads: 'reference_upload_ids' }, collect],
    ],
  });
}
