// Creates an image, then a video that starts with it, through the AI SDK. Needs GEN_API_KEY and GEN_BASE_URL.
import { writeFile } from 'node:fs/promises';
import { generateImage, experimental_generateVideo as generateVideo } from 'ai';
import { gen } from 'gen-client/ai-sdk';

const { image } = await generateImage({
  model: gen.image('svc-image-pro'),
  prompt: 'A fox asleep in fresh snow',
  aspectRatio: '16:9',
});
const { video, providerMetadata } = await generateVideo({
  model: gen.video('svc-video-pro'),
  prompt: { text: 'The fox wakes up and looks around', image: image.uint8Array },
  duration: 5,
});
await writeFile('fox.png', image.uint8Array);
await writeFile('fox.mp4', video.uint8Array);
console.log('fox.png and fox.mp4 saved', JSON.stringify(providerMetadata.gen));
