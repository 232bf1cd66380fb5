'use client';

import { type FormEvent, useEffect, useState } from 'react';

export default function Page() {
  const [id, setId] = useState<string>();
  const [status, setStatus] = useState('');

  async function create(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const prompt = new FormData(event.currentTarget).get('prompt');
    const response = await fetch('/api/videos', { method: 'POST', body: JSON.stringify({ prompt }) });
    setStatus(response.ok ? 'processing' : 'The video could not be created.');
    setId(response.ok ? (await response.json()).id : undefined);
  }

  useEffect(() => {
    if (!id || status !== 'processing') return;
    const timer = setInterval(async () => setStatus((await (await fetch(`/api/videos/${id}`)).json()).status), 1_000);
    return () => clearInterval(timer);
  }, [id, status]);

  return (
    <main>
      <h1>Create a video</h1>
      <form onSubmit={create}>
        <input name="prompt" required placeholder="A fox at dawn" aria-label="Prompt" />{' '}
        <button type="submit">Create</button>
      </form>
      <p aria-live="polite">{status}</p>
      {status === 'completed' && <video src={`/api/files/${id}`} controls autoPlay muted style={{ width: '100%' }} />}
    </main>
  );
}
