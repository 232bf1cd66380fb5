import { Command } from 'commander';
import { checkVideoEdit } from '../../rules/preflight.js';
import type { VideoEditParams } from '../../schemas/video-edit-params.js';
import { doing, type OpenSession, withExamples } from '../action.js';
import { addJobFlags, collect, type JobFlags, parseNumber } from '../flags.js';
import { mentionOf } from '../references.js';
import { runJobCommand } from '../run-job.js';

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
