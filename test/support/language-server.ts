import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LanguageService } from './editor.js';
import { COMPILERS } from './type-check.js';

/** A completion as the server gives it, as far as it is read here. */
interface Item {
  readonly label: string;
  readonly filterText?: string;
  readonly documentation?: { readonly value: string };
}

/** TypeScript 7 has no library: its editor support is a process that speaks the Language Server Protocol. */
export async function openLanguageServer(file: string): Promise<LanguageService> {
  const folder = dirname(file);
  const compilerOptions = { target: 'es2022', module: 'nodenext', strict: true, exactOptionalPropertyTypes: true };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: [], noEmit: true }, files: ['main.ts'] }),
  );
  const server = startServer(folder);
  const uri = pathToFileURL(file).href;
  await server.ask('initialize', {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    capabilities: {
      textDocument: {
        hover: { contentFormat: ['markdown'] },
        completion: { completionItem: { documentationFormat: ['markdown'] } },
      },
    },
  });
  server.tell('initialized', {});
  let text = '';
  let version = 0;
  const at = (offset: number) => {
    const before = text.slice(0, offset).split('\n');
    return { textDocument: { uri }, position: { line: before.length - 1, character: before.at(-1)?.length } };
  };
  return {
    open(content) {
      text = content;
      version += 1;
      if (version === 1) {
        server.tell('textDocument/didOpen', { textDocument: { uri, languageId: 'typescript', version, text } });
      } else {
        server.tell('textDocument/didChange', { textDocument: { uri, version }, contentChanges: [{ text }] });
      }
    },
    async complete(offset) {
      const list = (await server.ask('textDocument/completion', at(offset))) as { items?: Item[] } | null;
      const items = list?.items ?? [];
      const nameOf = ({ label, filterText }: Item) => (filterText ?? label).replace(/\?$|^["']|["']$/g, '');
      return {
        names: items.map(nameOf),
        async docOf(name) {
          const item = items.find((one) => nameOf(one) === name);
          const full = item && ((await server.ask('completionItem/resolve', item)) as Item);
          return full?.documentation?.value ?? '';
        },
      };
    },
    async hoverAt(offset) {
      const hover = (await server.ask('textDocument/hover', at(offset))) as { contents?: { value: string } } | null;
      const [, shown = '', documentation = ''] =
        /^```\w*\n(.*?)\n```\n?(.*)$/s.exec(hover?.contents?.value ?? '') ?? [];
      return { shown: shown.replace(/\s+/g, ' '), documentation };
    },
    close: server.stop,
  };
}

/** A message of the protocol: a question, an answer or a notice. */
interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** The server's process, with its framing: a header of the length, an empty line and JSON. */
function startServer(folder: string) {
  const bin = join(dirname(COMPILERS['TypeScript 7']), 'bin/tsc');
  const child = spawn(process.execPath, [bin, '--lsp', '--stdio'], { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  const send = (message: Message) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const receive = ({ id, method, params, result, error }: Message) => {
    if (id === undefined) return;
    if (method !== undefined) {
      // The server's own questions: it wants one setting per item, and has its defaults where there is none.
      const items = method === 'workspace/configuration' ? (params as { items: unknown[] }).items : [];
      send({ id, result: items.map(() => null) });
      return;
    }
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error) asked?.reject(new Error(error.message));
    else asked?.resolve(result);
  };
  let buffer = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk]);
    for (;;) {
      const head = buffer.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, Math.max(head, 0)).toString())?.[1]);
      if (head < 0 || buffer.length < head + 4 + length) return;
      const body = buffer.subarray(head + 4, head + 4 + length).toString();
      buffer = buffer.subarray(head + 4 + length);
      receive(JSON.parse(body));
    }
  });
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`The language server ended with code ${code}.`));
  });
  let last = 0;
  return {
    ask(method: string, params: unknown): Promise<unknown> {
      last += 1;
      const id = last;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        send({ id, method, params });
      });
    },
    tell: (method: string, params: unknown) => send({ method, params }),
    stop: () => void child.kill(),
  };
}
