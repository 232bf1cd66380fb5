// `node --import ./scripts/typescript.mjs scripts/terminal-pictures.ts`: runs the CLI in a pseudo-terminal on the sandbox, and
// writes the screen to docs/terminal-job.svg and docs/terminal-batch.svg. Needs `script` from util-linux.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'foxes-'));
const BIN = join(folder, '.gen-client.mjs');
const COLUMNS = 100;

/** A scrolling screen that supports the escape sequences of the live line. */
class Screen {
  readonly lines: string[] = [''];
  #row = 0;
  #column = 0;

  /** The lines, without trailing empty ones. */
  get text(): string[] {
    return this.lines.slice(0, this.lines.findLastIndex((line) => line !== '') + 1);
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences.
    for (const [piece] of text.matchAll(/\x1B\[[?\d;]*[A-Za-z]|[\r\n]|[^\x1B\r\n]+/g)) this.#apply(piece);
  }

  #apply(piece: string): void {
    if (piece === '\r') this.#column = 0;
    else if (piece === '\n') this.#moveTo(this.#row + 1);
    else if (!piece.startsWith('\x1B')) this.#print(piece);
    else this.#control(Number(piece.slice(2, -1)) || 0, piece.at(-1) ?? '');
  }

  #control(count: number, command: string): void {
    const line = this.lines[this.#row] ?? '';
    if (command === 'A') this.#moveTo(Math.max(0, this.#row - (count || 1)));
    else if (command === 'B') this.#moveTo(this.#row + (count || 1));
    else if (command === 'G') this.#column = Math.max(0, count - 1);
    else if (command === 'K') this.lines[this.#row] = count === 2 ? '' : line.slice(0, this.#column);
    else if (command === 'J') this.lines.splice(this.#row, Number.POSITIVE_INFINITY, line.slice(0, this.#column));
    // Cursor visibility and colors don't change the text.
    else if (!/[hlm]/.test(command)) throw new Error(`Unknown escape sequence: ${command}.`);
  }

  #moveTo(row: number): void {
    this.#row = row;
    while (this.lines.length <= row) this.lines.push('');
  }

  #print(text: string): void {
    const line = (this.lines[this.#row] ?? '').padEnd(this.#column);
    this.lines[this.#row] = line.slice(0, this.#column) + text + line.slice(this.#column + text.length);
    this.#column += text.length;
  }
}

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Draws lines as SVG, in the colors of the reader's theme. */
function picture(lines: readonly string[]): string {
  const [size, height, margin, top] = [13, 20, 18, 44];
  const width = Math.round(COLUMNS * size * 0.602 + 2 * margin);
  const totalHeight = top + lines.length * height + 8;
  const text = lines.map((line, index) => {
    const kind = line.startsWith('$') ? ' class="command"' : /[█░]| elapsed/.test(line) ? ' class="live"' : '';
    return `<text x="${margin}" y="${top + (index + 0.5) * height}"${kind} xml:space="preserve">${escapeXml(line)}</text>`;
  });
  const dots = [0, 1, 2].map((index) => `<circle cx="${margin + 6 + index * 18}" cy="20" r="5.5" class="dot"/>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${totalHeight}" width="${width}" height="${totalHeight}" role="img">
<style>
text { font: ${size}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #3b4252; }
.command { fill: #0b1324; font-weight: 600; }
.live { fill: #0f766e; }
.frame { fill: #f8fafc; stroke: #cbd5e1; }
.dot { fill: #cbd5e1; }
@media (prefers-color-scheme: dark) {
text { fill: #c3ccdb; }
.command { fill: #ffffff; }
.live { fill: #5eead4; }
.frame { fill: #0f172a; stroke: #334155; }
.dot { fill: #475569; }
}
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${totalHeight - 1}" rx="10" class="frame"/>
${[...dots, ...text].join('\n')}
</svg>
`;
}

interface Screenshot {
  readonly file: string;
  readonly command: string;
  /** Number of screen rows. */
  readonly rows: number;
  /** Matches the screen at the moment of the picture. */
  readonly when: RegExp;
}

/** Runs a command in a pseudo-terminal to its end, and returns the screen at the moment of the picture. */
async function screenOf({ command, rows, when }: Screenshot, env: NodeJS.ProcessEnv): Promise<string[]> {
  const shellCommand = `stty cols ${COLUMNS} rows ${rows}; ${command.replace(/^gen-client/, `'${process.execPath}' '${BIN}'`)}`;
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const child = spawn('script', ['-qec', shellCommand, '/dev/null'], { cwd: folder, env, stdio });
  const screen = new Screen();
  screen.write(`$ ${command}\r\n`);
  let lines: string[] | undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen.write(text);
    if (lines === undefined && when.test(screen.lines.join('\n'))) lines = screen.text.slice(-rows);
  });
  const [code] = await once(child, 'close');
  if (code !== 0 || lines === undefined)
    throw new Error(`${command} exited with ${code} without showing ${when}:\n${screen.lines.join('\n')}`);
  return lines;
}

/** Starts a sandbox, and returns the environment for its clients. */
async function startSandbox(...flags: string[]) {
  const child = spawn(process.execPath, [BIN, 'sandbox', '--port', '0', '--json', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const { baseUrl, apiKey } = JSON.parse(line);
  const { PATH, HOME } = process.env;
  return { child, env: { PATH, HOME, TERM: 'xterm-256color', GEN_BASE_URL: baseUrl, GEN_API_KEY: apiKey } };
}

const JOB: Screenshot = {
  file: 'docs/terminal-job.svg',
  command: 'gen-client video "a fox at dawn" --duration 5 --out fox.mp4',
  rows: 4,
  when: /0:0[4-9] elapsed/,
};
const BATCH: Screenshot = {
  file: 'docs/terminal-batch.svg',
  command: 'gen-client batch foxes.jsonl --out out/ --max-tokens 500 --concurrency 6',
  rows: 24,
  when: /1[7-9] of 30 done.*left/,
};

const foxes = Array.from({ length: 30 }, (_, index) => {
  const id = `fox-${String(index + 1).padStart(2, '0')}`;
  if (index % 5 === 0) return { id, call: 'videos', prompt: `fox ${index} runs`, duration: 4, resolution: '480p' };
  return { id, call: 'images', model: 'svc-image-fast', prompt: `fox ${index}` };
});

await build({
  entryPoints: [join(ROOT, 'src/cli/index.ts')],
  outfile: BIN,
  ...{ bundle: true, platform: 'node', format: 'esm', alias: { fflate: 'fflate/browser' } },
  // For CommonJS packages.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
});
const { child, env } = await startSandbox('--job-time', '6s', '--no-limits');
try {
  writeFileSync(join(folder, 'foxes.jsonl'), foxes.map((row) => JSON.stringify(row)).join('\n'));
  for (const shot of [JOB, BATCH]) {
    const lines = (await screenOf(shot, env)).map((line) => line.replaceAll(folder, '~/foxes'));
    writeFileSync(join(ROOT, shot.file), picture(lines));
    process.stdout.write(`${shot.file}\n${lines.join('\n')}\n`);
  }
} finally {
  child.kill();
  rmSync(folder, { recursive: true });
}
