import { existsSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitepress';
import { sidebar } from '../sidebar.ts';

const here = fileURLToPath(new URL('..', import.meta.url));
const root = join(here, '../..');
/** Where files of the repository that are no pages of the site are read; CI of the real repository sets it. */
const sources = process.env.SKEIN_DOCS_SOURCES ?? '';

/** The pages of docs/, as a site with a search, which loads nothing from elsewhere. */
export default defineConfig({
  title: 'Skein',
  description: 'An LLM serving engine and model-serving platform for Node.js',
  lang: 'en',
  base: process.env.SKEIN_DOCS_BASE ?? '/',
  srcDir: '../../docs',
  outDir: '../../.docs-site',
  cacheDir: './.cache',
  srcExclude: ['lab/**'],
  rewrites: (path) => path.replace(/(^|\/)README\.md$/, '$1index.md'),
  cleanUrls: false,
  // Others fail the build. Examples of addresses on the reader's own machine are no links.
  ignoreDeadLinks: 'localhostLinks',
  lastUpdated: false,
  metaChunk: true,
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sidebar(join(root, 'docs')),
    outline: { level: [2, 3] },
    docFooter: { prev: false, next: false },
  },
  markdown: {
    anchor: { slugify: anchorOf },
    config: (markdown) => {
      // Texts such as {{ role }} of chat templates are texts here.
      const fence = markdown.renderer.rules.code_inline!;
      markdown.renderer.rules.code_inline = (tokens, index, options, env, self) => {
        tokens[index]!.attrSet('v-pre', '');
        return fence(tokens, index, options, env, self);
      };
      markdown.core.ruler.push('links-out-of-docs', ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.type === 'link_open' ? token.attrGet('href') : null;
          if (href !== null) token.attrSet('href', addressOf(href, env.relativePath ?? ''));
        }
      });
    },
  },
  vite: {
    build: { chunkSizeWarningLimit: 4000 },
    publicDir: false,
    plugins: [packagesOfTheSite()],
  },
});

/** The pages lie outside of the folder whose packages they need: those are found when the bundle of the build runs here. */
function packagesOfTheSite(): Plugin {
  return {
    name: 'packages-of-the-site',
    enforce: 'pre',
    resolveId: (id, _importer, options) =>
      options.ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null,
  };
}

/** The anchor of a heading, as GitHub makes it: links in the pages are right in both places. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** A link to a file of the repository outside docs/ leads to where the sources are read; others stay. */
function addressOf(href: string, page: string): string {
  if (/^(\w+:|#|\/)/.test(href)) return href;
  const [path = ''] = href.split('#', 1);
  const from = join(root, 'docs', dirname(page));
  const file = relative(root, join(from, decodeURI(path)));
  const isPage = file.startsWith(`docs${posix.sep}`) && file.endsWith('.md') && !file.startsWith('docs/lab/');
  // A folder's page is its README in the repository, and its index in the site.
  if (isPage) return href.replace(/(^|\/)README\.md(?=$|#)/, '$1index.md');
  if (!existsSync(join(root, file))) return href;
  return sources === '' ? '#' : `${sources}/${file}`;
}
