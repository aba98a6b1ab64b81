// Bundles the dashboard into dist/dashboard (of .dist-next, which becomes dist when all is built), each file compressed as browsers take it:
//
//   index.html.gz, icon*.gz        as they are in src/server/dashboard/page, like manifest.json.gz
//   page.js.gz                     main.ts with its libraries
//   pdf-worker.js.gz               the worker that reads PDF files, with pdf.js, which a browser asks for with its first PDF
//   cmaps.bin.gz                   the maps that it asks for with the first PDF in Chinese, Japanese or Korean that has none of its own
//   code-worker.js.gz              the worker that colours code, with highlight.js, which a browser asks for with its first block of code
//   math.js.gz, math.css.gz        KaTeX, which a browser asks for with its first formula, and its fonts (KaTeX_*.woff2.gz)
//   theme.js.gz                    what runs before the first paint
//   page.css.gz                    style/page.css with what it imports
//   NOTICES.txt                    the licences of the libraries within
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { notices } from './licence-notices.mjs';
import { cmapsLicence, packedCMaps } from './pack-cmaps.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src/server/dashboard/page');
const target = join(root, '.dist-next/dashboard');

const page = {
  page: join(source, 'main.ts'),
  theme: join(source, 'theme-boot.ts'),
  // Two of one name, distinguished by what they become.
  style: join(source, 'style/page.css'),
};
// What is loaded when it is needed, each as a module.
const later = {
  'pdf-worker': join(source, 'chat/attachments/pdf/pdf-worker.ts'),
  'code-worker': join(source, 'chat/code/code-worker.ts'),
  math: join(source, 'chat/math/katex-drawing.ts'),
};
const katex = join(dirname(createRequire(import.meta.url).resolve('katex')));
const options = {
  absWorkingDir: root,
  outdir: target,
  bundle: true,
  platform: 'browser',
  // light-dark() of the style sheet is of 2023 and 2024, and is written as it is.
  target: ['chrome123', 'firefox120', 'safari17.5'],
  minify: true,
  legalComments: 'none',
  write: false,
  metafile: true,
  logLevel: 'warning',
};
const built = await Promise.all([
  build({ ...options, entryPoints: page, format: 'iife' }),
  build({ ...options, entryPoints: later, format: 'esm' }),
]);

mkdirSync(target, { recursive: true });
for (const { path, contents } of built.flatMap(({ outputFiles }) => outputFiles))
  pack(path.replace(/style\.css$/, 'page.css'), contents);
pack(join(target, 'cmaps.bin'), packedCMaps());
for (const name of ['index.html', 'manifest.json', 'icon.svg', 'icon-192.png', 'icon-512.png'])
  pack(join(target, name), readFileSync(join(source, name)));
pack(join(target, 'math.css'), mathStyles());
const fonts = readdirSync(join(katex, 'fonts')).filter((name) => name.endsWith('.woff2'));
for (const name of fonts) pack(join(target, name), readFileSync(join(katex, 'fonts', name)));
writeFileSync(
  join(target, 'NOTICES.txt'),
  `${notices(built.flatMap(({ metafile }) => Object.keys(metafile.inputs)))}\n${cmapsLicence()}`,
);

/** KaTeX's style sheet with fonts of the one kind that all browsers take which the page is for. */
function mathStyles() {
  const styles = readFileSync(join(katex, 'katex.min.css'), 'utf8');
  const one = styles.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, '');
  const named = one.replaceAll('url(fonts/', 'url(');
  const left = named.match(/url\((?!KaTeX_[\w-]+\.woff2\))[^)]*\)/g);
  if (left !== null)
    throw new Error(`KaTeX's style sheet names ${left[0]}; fonts of woff2 are expected alone.`);
  return named;
}

function pack(path, contents) {
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }));
}
