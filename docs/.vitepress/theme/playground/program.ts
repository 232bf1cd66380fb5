// Builds the program for the playground's controls, and runs the edited program.

/** Values of the controls. */
export interface Choices {
  readonly call: 'videos' | 'images';
  readonly model: string;
  readonly prompt: string;
  readonly duration: number;
  readonly ratio: string;
  readonly ending: Ending;
}

/** What happens to the call. */
export type Ending = 'completes' | 'fails' | 'lost' | 'limited';

const PREPARATIONS: Readonly<Record<Ending, (call: string) => string>> = {
  completes: () => '',
  fails: () => "sandbox.outcomes.next({ errorCode: 'generation_rejected' });\n\n",
  lost: (call) => `// Creates the job, but loses the response.
sandbox.faults.add({ match: { path: '/v1/${call}' }, commitThenDrop: true });\n\n`,
  limited: (call) => `sandbox.faults.add({ match: { path: '/v1/${call}' }, status: 429, retryAfterS: 2 });\n\n`,
};

/** Returns the program for the controls. */
export function programOf({ call, model, prompt, duration, ratio, ending }: Choices): string {
  const details =
    call === 'videos' ? `    duration: ${duration},\n    aspect_ratio: '${ratio}',` : `    ratio: '${ratio}',`;
  return `${PREPARATIONS[ending](call)}const job = await client.${call}.createAndWait(
  {
    model: '${model}',
    prompt: ${JSON.stringify(prompt)},
${details}
    webhook_url: 'https://app.example/webhooks',
  },
  { onCreated: ({ job }) => console.log(job.id, 'is accepted') },
);

console.log(job.finalTokenCost, 'tokens charged');
await show(job);
`;
}

type Program = (...names: unknown[]) => Promise<unknown>;

/** Runs a program with the names of `scope` and the imports of `modules`. */
export function run(code: string, scope: Readonly<Record<string, unknown>>, modules: Readonly<Record<string, object>>) {
  const body = code.replace(
    /^\s*import\s*\{([^}]*)\}\s*from\s*['"]([^'"]+)['"];?/gm,
    (_all, names: string, from: string) => {
      if (!Object.hasOwn(modules, from)) throw new Error(`The playground has no module "${from}".`);
      return `const {${names.replace(/\bas\b/g, ':')}} = modules['${from}'];`;
    },
  );
  // Runs only code that the reader typed into the page.
  const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor as new (...text: string[]) => Program;
  const names = Object.keys(scope);
  return new AsyncFunction(...names, 'modules', `'use strict';\n${body}`)(...names.map((name) => scope[name]), modules);
}

const TOKEN =
  /(\/\/[^\n]*)|('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)|\b(await|async|const|let|for|of|if|else|return|new|import|from|try|catch|throw|function)\b|\b(\d[\d_.]*)\b|\b([A-Za-z_]\w*)(?=\s*:)|\b([A-Za-z_]\w*)(?=\()/g;
const KINDS = ['comment', 'string', 'keyword', 'number', 'field', 'call'];

/** Returns the program as HTML, with a class for each kind of token. */
export function highlight(code: string): string {
  let html = '';
  let end = 0;
  for (const match of code.matchAll(TOKEN)) {
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    html += `${escapeHtml(code.slice(end, match.index))}<span class="t-${kind}">${escapeHtml(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escapeHtml(code.slice(end));
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign] ?? sign);
}
