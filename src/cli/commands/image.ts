import { Command } from 'commander';
import { checkImage } from '../../rules/preflight.js';
import type { ImageParams } from '../../schemas/image-params.js';
import { doing, type OpenSession, withExamples } from '../action.js';
import { addJobFlags, collect, type JobFlags } from '../flags.js';
import { mentionOf } from '../references.js';
import { runJobCommand } from '../run-job.js';

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
