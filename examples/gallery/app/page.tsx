'use client';

import { createGenPage, type Run } from 'gen-client/page';
import { useRun } from 'gen-client/react';
import { useEffect, useState } from 'react';
import type { proxy } from '../lib/gen';

const gen = createGenPage<typeof proxy>({ url: '/api/gen' });

export default function Gallery() {
  const [runs, setRuns] = useState<Run[]>([]);
  useEffect(() => setRuns(gen.resume()), []); // after a reload: the same jobs
  const create = (form: FormData) => {
    const image = form.get('image') as File;
    const run = gen.videos.create({
      prompt: String(form.get('prompt')),
      ...(image.size > 0 && { first_frame_upload_id: image }),
    });
    setRuns([...new Set([run, ...runs])]); // a double click: the same run
  };
  return (
    <main>
      <h1>Gallery</h1>
      <form action={create}>
        <input name="prompt" required placeholder="A fox at dawn" aria-label="Prompt" />{' '}
        <input name="image" type="file" accept="image/*" aria-label="First frame" />{' '}
        <button type="submit">Make it</button>
      </form>
      {runs.map((run) => (
        <Video key={run.id} run={run} />
      ))}
    </main>
  );
}

function Video({ run }: { run: Run }) {
  const { phase, uploaded, progress, url, error } = useRun(run);
  if (phase === 'done') return <video src={url} controls muted style={{ width: '100%' }} />;
  if (error) return <p role="alert">{error.message}</p>;
  return (
    <p aria-live="polite">
      {phase} <progress value={phase === 'uploading' ? uploaded : progress} />
    </p>
  );
}
