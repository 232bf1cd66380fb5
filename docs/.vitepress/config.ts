import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { ENTRY_POINTS } from '../../scripts/entry-points.js';
import { chapters } from './guides.js';
import { labelCells } from './labels.js';
import { llmsFullTxt, llmsTxt } from './llms.js';

const built = (file: string) => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url));
const guides = chapters();

/** Entry points, as programs import them. */
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

/** Returns the sidebar items of a module's classes, from TypeDoc's pages. */
function classesOf(module: string): DefaultTheme.SidebarItem {
  const folder = new URL(`../api/${module}/classes/`, import.meta.url);
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder).map((file) => file.replace('.md', ''));
  // List the client before the errors.
  const sorted = names.toSorted((a, b) => Number(/Error$/.test(a)) - Number(/Error$/.test(b)) || a.localeCompare(b));
  const items = sorted.map((name) => ({ text: name, link: `/api/${module}/classes/${name}` }));
  return { collapsed: module !== 'gen-client', items };
}

/** Writes an index and a complete text for language models. */
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
  // llms.txt links to the guides as Markdown, and the recipes link to the examples.
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
          // Rank guides above the reference, because people search for a task first.
          searchOptions: { boostDocument: (id) => (/\/api\//.test(id) ? 0.001 : 1) },
        },
      },
    },
    docFooter: { prev: 'Previous', next: 'Next' },
    footer: { message: 'MIT license' },
  },
  vite: {
    resolve: {
      alias: [
        // The playground runs the published build.
        { find: /^gen-client$/, replacement: built('index.js') },
        { find: /^gen-client\/([a-z-]+)$/, replacement: built('$1.js') },
      ],
    },
    build: {
      chunkSizeWarningLimit: 2_000,
      rollupOptions: {
        // zod contains comments for esbuild that Rollup doesn't support.
        onwarn: (warning, warn) => warning.code !== 'INVALID_ANNOTATION' && warn(warning),
      },
    },
  },
});

function icon(): string {
  return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#e4572e"/><path d="M12 9.5v13l11-6.5z" fill="#fff"/></svg>';
}
