import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { ENTRY_POINTS } from '../../scripts/entry-points.js';
import { chapters } from './guides.js';
import { labelCells } from './labels.js';
import { llmsFullTxt, llmsTxt } from './llms.js';

const built = (file: string) => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url));
const guides = chapters();

/** The entry points, as programs import them. */
const MODULES = ENTRY_POINTS.map((name) => (name === 'index' ? 'gen-client' : `gen-client/${name}`));

const guideSidebar: DefaultTheme.SidebarItem[] = guides.map(({ title, guides }) => ({
  text: title,
  items: guides.map((guide) => ({ text: guide.title, link: `/${guide.name}` })),
}));

const referenceSidebar: DefaultTheme.SidebarItem[] = [
  {
    text: 'API reference',
    items: MODULES.map((module) => ({
      text: module,
      link: `/api/${module}/`,
      ...classesOf(module),
    })),
  },
];

/** The pages of a module's classes, as TypeDoc has written them. */
function classesOf(module: string): DefaultTheme.SidebarItem {
  const folder = new URL(`../api/${module}/classes/`, import.meta.url);
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder).map((file) => file.replace('.md', ''));
  // The client before the errors.
  const sorted = names.toSorted((a, b) => Number(/Error$/.test(a)) - Number(/Error$/.test(b)) || a.localeCompare(b));
  const items = sorted.map((name) => ({ text: name, link: `/api/${module}/classes/${name}` }));
  return { collapsed: module !== 'gen-client', items };
}

/** The texts for language models: an index, and everything in one file. */
function writeLlmsTxt(): void {
  const folder = new URL('../public/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL('llms.txt', folder), llmsTxt(guides));
  writeFileSync(new URL('llms-full.txt', folder), llmsFullTxt(guides));
}

writeLlmsTxt();

export default defineConfig({
  title: 'gen-client',
  description: 'A typed client for a media-generation API',
  lang: 'en',
  cleanUrls: false,
  lastUpdated: false,
  markdown: { config: labelCells },
  // Each guide as Markdown beside its page: llms.txt links to it. The recipes link to the examples.
  buildEnd({ outDir }) {
    cpSync(new URL('../../examples/apps', import.meta.url), `${outDir}/examples/apps`, { recursive: true });
    for (const { name, text } of guides.flatMap((chapter) => chapter.guides)) {
      writeFileSync(`${outDir}/${name}.md`, `${text}\n`);
    }
  },
  metaChunk: true,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon())}` }]],
  themeConfig: {
    siteTitle: 'gen-client',
    nav: [
      { text: 'Guides', link: '/quickstart', activeMatch: '^/(?!api/|playground|index|$)' },
      { text: 'Playground', link: '/playground' },
      { text: 'API reference', link: '/api/', activeMatch: '^/api/' },
    ],
    sidebar: { '/api/': referenceSidebar, '/': guideSidebar },
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // All guides before members: people search for a task, and open the reference from there.
          searchOptions: { boostDocument: (id) => (/\/api\//.test(id) ? 0.001 : 1) },
        },
      },
    },
    docFooter: { prev: 'Before', next: 'Next' },
    footer: { message: 'MIT licence' },
  },
  vite: {
    resolve: {
      alias: [
        // What is published is what the playground runs.
        { find: /^gen-client$/, replacement: built('index.js') },
        { find: /^gen-client\/([a-z-]+)$/, replacement: built('$1.js') },
      ],
    },
    build: {
      chunkSizeWarningLimit: 2_000,
      rollupOptions: {
        // Comments in zod that only esbuild reads.
        onwarn: (warning, tell) => warning.code !== 'INVALID_ANNOTATION' && tell(warning),
      },
    },
  },
});

function icon(): string {
  return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#e4572e"/><path d="M12 9.5v13l11-6.5z" fill="#fff"/></svg>';
}
