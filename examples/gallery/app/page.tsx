'use client';

import { createGenPage, type Run } from 'gen-client/page';
import { useRun } from 'gen-client/react';
import { useEffect, useState } from 'react';
import type { proxy } from '../lib/gen';

const gen = createGenPage<typeof proxy>({ url: '/api/gen' });

export default function Gallery() {
  const [runs, setRuns] = useState<Run[]>([]);
  useEffect(() => setRuns(gen.resume().reverse()), []); // restores the jobs after a reload
  const create = (form: FormData) => {
    const image = form.get('image') as File;
    const run = gen.videos.create({
      prompt: String(form.get('prompt')),
      ...(image.size > 0 && { first_frame_upload_id: image }),
    });
    setRuns([...new Set([run, ...runs])]); // a double click returns the same run
  };
  const remove = (run: Run) => {
    run.forget();
    setRuns(runs.filter((other) => other !== run));
  };
  return (
    <main>
      <h1>Gallery</h1>
      <form action={create}>
        <textarea name="prompt" required rows={2} placeholder="A fox at dawn" aria-label="Prompt" />
        <input name="image" type="file" accept="image/*" aria-label="First frame" />
        <button type="submit">Create video</button>
      </form>
      <ul>
        {runs.map((run) => (
          <Video key={run.id} run={run} onRemove={() => remove(run)} />
        ))}
      </ul>
      {runs.length === 0 && <p className="empty">Your videos appear here.</p>}
    </main>
  );
}

const LABELS = {
  uploading: 'Uploading…',
  creating: 'Starting…',
  waiting: 'Generating…',
  done: 'Ready',
  failed: 'Failed',
};

function Video({ run, onRemove }: { run: Run; onRemove: () => void }) {
  const { phase, uploaded, progress, tokens, url, error, isCancelable } = useRun(run);
  const isBusy = !url && !error;
  return (
    <li className={phase} aria-live="polite">
      {url ? <video src={url} controls muted playsInline /> : <p>{error?.message ?? LABELS[phase]}</p>}
      {isBusy && <progress aria-label={LABELS[phase]} value={phase === 'uploading' ? uploaded : progress} />}
      <footer>
        {LABELS[phase]} {tokens !== undefined && `· ${tokens} tokens`}
        <button type="button" onClick={onRemove}>
          {isCancelable ? 'Cancel' : 'Remove'}
        </button>
      </footer>
    </li>
  );
}
