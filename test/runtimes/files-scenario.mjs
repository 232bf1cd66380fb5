// Uploads every kind of source to storage that requires a length and the signed headers, and downloads outputs. `node` is the
// entry point `gen-client/node`, if the runtime has a file system. Plain JavaScript for Node, Bun, Deno, and workerd.
export async function filesScenario({ gen, node, baseUrl, path, directory }) {
  const client = new gen.GenClient({ apiKey: 'key-for-tests', baseUrl, maxRetries: 2 });
  const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const sizeBytes = bytes.length;
  const stream = () => new Blob([bytes]).stream();
  const sources = {
    'a Blob': [new Blob([bytes])],
    bytes: [bytes],
    'a stream': [stream(), { sizeBytes }],
    'a factory of streams': [stream, { sizeBytes }],
    'an async iterable': [chunks(bytes), { sizeBytes }],
    'a Response': [new Response(bytes, { headers: { 'content-length': String(sizeBytes) } })],
    ...(node && { 'a path': [node.fromPath(path)] }),
  };
  const steps = [];
  for (const [name, [source, options]] of Object.entries(sources)) {
    await step(steps, name, async () => {
      let progress = 0;
      const onProgress = ({ sentBytes }) => {
        progress = sentBytes;
      };
      const { mime_type, file_size } = await client.uploads.upload(source, { ...options, onProgress });
      if (mime_type !== 'image/png' || file_size !== progress)
        throw new Error(`${mime_type}, ${progress} of ${file_size} bytes`);
    });
  }
  await step(steps, 'a stream that is shorter than declared fails', async () => {
    const error = await client.uploads.upload(stream(), { sizeBytes: sizeBytes + 1 }).catch((reason) => reason);
    if (!gen.UploadError.isInstance(error) || error.step !== 'put') throw new Error(String(error));
  });
  await step(steps, 'an output can be cloned and piped', async () => {
    const output = await client.jobs.output('job_complete');
    const clone = output.clone();
    const { readable, writable } = new TransformStream();
    const piped = output.body.pipeTo(writable);
    const bodies = await Promise.all([new Response(readable).arrayBuffer(), clone.arrayBuffer()]);
    await piped;
    for (const body of bodies) {
      const wrong = new Uint8Array(body).filter((byte) => byte !== 9);
      if (body.byteLength !== 2_000_000 || wrong.length > 0)
        throw new Error(`${body.byteLength} bytes, ${wrong.length} of them wrong`);
    }
  });
  if (node) {
    await step(steps, 'an interrupted download resumes', async () => {
      const saved = await node.saveOutput(client, 'job_interrupted', `${directory}/saved.mp4`, { overwrite: true });
      if (saved.sizeBytes !== 2_000_000) throw new Error(`${saved.sizeBytes} bytes`);
    });
  }
  return steps;
}

async function* chunks(bytes) {
  for (let at = 0; at < bytes.length; at += 7_777) yield bytes.slice(at, at + 7_777);
}

async function step(steps, name, run) {
  try {
    await run();
    steps.push({ name });
  } catch (error) {
    steps.push({ name, error: String(error?.stack ?? error) });
  }
}
