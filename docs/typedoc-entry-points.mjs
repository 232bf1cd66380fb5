// Names the reference's modules after the entry points of package.json, and lists them on its first page, with their lines of
// AGENTS.md.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Application, Converter, PageEvent, ReflectionKind } from 'typedoc';
import { ENTRY_POINTS, sourceOf } from '../scripts/entry-points.ts';

const agents = readFileSync(new URL('../AGENTS.md', import.meta.url), 'utf8');
const rows = [...agents.matchAll(/^\| `(gen-client[/\w-]*)` \| (.+) \|$/gm)];

export function load(app) {
  app.on(Application.EVENT_BOOTSTRAP_END, () => {
    const entryPoints = ENTRY_POINTS.map((name) => fileURLToPath(new URL(`../${sourceOf(name)}`, import.meta.url)));
    app.options.setValue('entryPoints', entryPoints);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const folder = module.name.replace('adapters/', '');
      module.name = folder === 'index' ? 'gen-client' : `gen-client/${folder}`;
    }
  });
  app.renderer.on(PageEvent.END, (page) => {
    if (page.url !== 'index.md') return;
    const lines = rows.map(([, name, use]) => `| [\`${name}\`](${name}/index.md) | ${use} |`);
    page.contents = ['# API reference', '', '| import | for |', '|---|---|', ...lines, ''].join('\n');
  });
}
