// Uploads from every kind of source in the runtime, to storage that requires a length and the signed headers. Plain JavaScript
// that runs in Node, Bun, Deno, and workerd. `gen` is the main entry point, and `node` is "./node" if the runtime has files.
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
    'an async iterable': [pieces(bytes), { sizeBytes }],
    'a Response': [new Response(bytes, { headers: { 'content-length': String(sizeBytes) } })],
    ...(node && { 'a path': [node.fromPath(path)] }),
  };
  const told = [];
  for (const [name, [source, options]] of Object.entries(sources)) {
    await step(told, name, async () => {
      let sent = 0;
      const onProgress = ({ sentBytes }) => {
        sent = sentBytes;
      };
      const { mime_type, file_size } = await client.uploads.upload(source, { ...options, onProgress });
      if (mime_type !== 'image/png' || file_size !== sent)
        throw new Error(`${mime_type}, ${sent} of ${file_size} bytes`);
    });
  }
  await step(told, 'a stream shorter than announced', async () => {
    const error = await client.uploads.upload(stream(), { sizeBytes: sizeBytes + 1 }).catch((reason) => reason);
    if (!gen.UploadError.isInstance(error) || error.step !== 'put') throw new Error(String(error));
  });
  await step(told, 'a piped output and its clone', async () => {
    const output = await client.jobs.output('job_whole');
    const copy = output.clone();
    const { readable, writable } = new TransformStream();
    const piped = output.body.pipeTo(writable);
    const bodies = await Promise.all([new Response(readable).arrayBuffer(), copy.arrayBuffer()]);
    await piped;
    for (const body of bodies) {
      const rest = new Uint8Array(body).filter((byte) => byte !== 9);
      if (body.byteLength !== 2_000_000 || rest.length > 0)
        throw new Error(`${body.byteLength} bytes, ${rest.length} of them wrong`);
    }
  });
  if (node) {
    await step(told, 'an interrupted download', async () => {
      const saved = await node.saveOutput(client, 'job_cut', `${directory}/saved.mp4`, { overwrite: true });
      if (saved.sizeBytes !== 2_000_000) throw new Error(`${saved.sizeBytes} bytes`);
    });
  }
  return told;
}

async function* pieces(bytes) {
  for (let at = 0; at < bytes.length; at += 7_777) yield bytes.slice(at, at + 7_777);
}

async function step(told, name, run) {
  try {
    await run();
    told.push({ name });
  } catch (error) {
    told.push({ name, error: String(error?.stack ?? error) });
  }
}
