// Records docs/command-line.svg: real commands of the built bin on a pseudo terminal, against a sandbox. Run it after
// `npm run build` with: node --import ./scripts/typescript.mjs scripts/record-terminal.ts. It needs `script` of util-linux.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { createSandbox }: typeof import('../src/sandbox/index.js') = await import(
  new URL('../dist/sandbox.js', import.meta.url).href
);

const COLUMNS = 96;
const ROWS = 24;
/** Pauses longer than this are shortened. */
const LONGEST_PAUSE_MS = 700;
const LAST_PAUSE_MS = 4000;
const COMMANDS = [
  'gen-client video "a fox at dawn" --duration 4 --out fox.mp4 --poll 300ms',
  'gen-client batch prompts.jsonl --out out/ --max-tokens 60 --poll 300ms',
  'gen-client doctor | head -n 5',
];
const PROMPTS = [
  { id: 'runs', prompt: 'the fox runs', duration: 4, first_frame_upload_id: 'fox.png' },
  { id: 'sleeps', prompt: 'the fox sleeps', duration: 4 },
  { id: 'woodcut', call: 'images', params: { prompt: 'the fox, woodcut', model: 'svc-image-pro', ratio: '3:4' } },
  { id: 'poster', call: 'images', params: { prompt: 'the fox, poster [slow:3s]' } },
];

const ESCAPE = '\u001b';
const PIECES = new RegExp(`${ESCAPE}\\[[?\\d;]*[A-Za-z]|[\\r\\n]|[^${ESCAPE}\\r\\n]+`, 'g');

/** A screen at a time. */
interface Frame {
  readonly atMs: number;
  readonly rows: readonly string[];
}

/** As much of a terminal as the progress bars use. */
class Screen {
  #lines: string[] = [''];
  #column = 0;

  write(text: string): void {
    for (const [piece] of text.matchAll(PIECES)) {
      if (piece === '\r') this.#column = 0;
      else if (piece === '\n') {
        this.#lines.push('');
        this.#column = 0;
      } else if (piece.startsWith(ESCAPE)) this.#control(piece);
      else this.#put(piece);
    }
  }

  rows(): string[] {
    return this.#lines.slice(-ROWS).map((line) => line.slice(0, COLUMNS).trimEnd());
  }

  #control(sequence: string): void {
    if (sequence.endsWith('G')) this.#column = Number.parseInt(sequence.slice(2), 10) - 1 || 0;
    if (sequence.endsWith('K')) this.#setLine(sequence === `${ESCAPE}[2K` ? '' : this.#line().slice(0, this.#column));
  }

  #put(text: string): void {
    const line = this.#line().padEnd(this.#column);
    this.#setLine(line.slice(0, this.#column) + text + line.slice(this.#column + text.length));
    this.#column += text.length;
  }

  #line(): string {
    return this.#lines.at(-1) ?? '';
  }

  #setLine(text: string): void {
    this.#lines[this.#lines.length - 1] = text;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'gen-client-'));
const sandbox = createSandbox({ jobDurationMs: 1800 });
const server = await sandbox.listen();
const frames: Frame[] = [];
const screen = new Screen();
let shownMs = 0;
try {
  const picture = await sandbox.client().images.createAndWait({ prompt: 'a fox' });
  const file = await sandbox.client().jobs.output(picture);
  writeFileSync(join(folder, 'fox.png'), new Uint8Array(await file.arrayBuffer()));
  writeFileSync(join(folder, 'prompts.jsonl'), PROMPTS.map((row) => JSON.stringify(row)).join('\n'));
  symlinkSync(fileURLToPath(new URL('../dist/cli.js', import.meta.url)), join(folder, 'gen-client'));
  for (const command of COMMANDS) {
    screen.write('$ ');
    for (const word of command.split(/(?<= )/)) {
      screen.write(word);
      note(90);
    }
    screen.write('\n');
    await run(command);
    note(LONGEST_PAUSE_MS);
  }
} finally {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}
writeFileSync(new URL('../docs/command-line.svg', import.meta.url), toSvg(frames, shownMs + LAST_PAUSE_MS));

function note(passedMs: number): void {
  shownMs += Math.min(passedMs, LONGEST_PAUSE_MS);
  frames.push({ atMs: shownMs, rows: screen.rows() });
}

async function run(command: string): Promise<void> {
  const env = {
    PATH: `${folder}:${dirname(process.execPath)}:${process.env.PATH}`,
    TERM: 'xterm',
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: server.url,
  };
  const child = spawn('script', ['-qfec', `stty cols ${COLUMNS} rows ${ROWS} -echo; ${command}`, '/dev/null'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let before = performance.now();
  for await (const chunk of child.stdout) {
    screen.write(String(chunk).replaceAll(`${folder}/`, '~/'));
    const now = performance.now();
    note(now - before);
    before = now;
  }
}

/** Each line of text stands once, with the time in which it is seen. */
function toSvg(seen: readonly Frame[], totalMs: number): string {
  const spans: { readonly row: number; readonly text: string; readonly from: number; readonly to: number }[] = [];
  for (let row = 0; row < ROWS; row++) {
    let text = '';
    let from = 0;
    for (const frame of [...seen, { atMs: totalMs, rows: [] }]) {
      const next = frame.rows[row] ?? '';
      if (next === text) continue;
      if (text !== '' && frame.atMs > from) spans.push({ row, text, from, to: frame.atMs });
      [text, from] = [next, frame.atMs];
    }
  }
  const percent = (ms: number) => `${((100 * ms) / totalMs).toFixed(2)}%`;
  const [width, height] = [COLUMNS * 8 + 32, ROWS * 18 + 32];
  const styles = spans.map(
    ({ from, to }, at) =>
      `#l${at}{animation-name:k${at}}@keyframes k${at}{0%,${percent(from)}{opacity:0}${percent(from + 1)},${percent(to - 1)}{opacity:1}${to < totalMs ? `${percent(to)},100%{opacity:0}` : ''}}`,
  );
  const texts = spans.map(
    ({ row, text }, at) =>
      `<text id="l${at}" x="16" y="${30 + row * 18}"${text.startsWith('$ ') ? ' class="c"' : ''}>${escaped(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A video, a batch and the doctor on a terminal">
<style>rect{fill:#14161a}text{font:13.3px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee6;white-space:pre;opacity:0;animation:${totalMs}ms step-end infinite}.c{fill:#8ab4ff}
${styles.join('\n')}
@media (prefers-reduced-motion:reduce){text{animation-play-state:paused;animation-delay:-${totalMs - 1}ms}}</style>
<rect width="${width}" height="${height}" rx="8"/>
${texts.join('\n')}
</svg>
`;
}

function escaped(text: string): string {
  return text.replace(/[<>&]/g, (char) => `&#${char.charCodeAt(0)};`);
}
