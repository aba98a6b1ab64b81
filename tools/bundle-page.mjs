// Bundles the dashboard into dist/dashboard (of .dist-next, which becomes dist when all is built), each file compressed as browsers take it:
//
//   index.html.gz, icon.svg.gz     as they are in src/server/dashboard/page
//   page.js.gz                     main.ts with its libraries
//   pdf-worker.js.gz               the worker that reads PDF files, with pdf.js, which a browser asks for with its first PDF
//   cmaps.bin.gz                   the maps that it asks for with the first PDF in Chinese, Japanese or Korean that has none of its own
//   theme.js.gz                    what runs before the first paint
//   page.css.gz                    style/page.css with what it imports
//   NOTICES.txt                    the licences of the libraries within
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
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
  // Two of one name, told apart by what they become.
  style: join(source, 'style/page.css'),
};
const worker = { 'pdf-worker': join(source, 'chat/attachments/pdf/pdf-worker.ts') };
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
// pdf.js uses what only a module has.
const built = await Promise.all([
  build({ ...options, entryPoints: page, format: 'iife' }),
  build({ ...options, entryPoints: worker, format: 'esm' }),
]);

mkdirSync(target, { recursive: true });
for (const { path, contents } of built.flatMap(({ outputFiles }) => outputFiles))
  pack(path.replace(/style\.css$/, 'page.css'), contents);
pack(join(target, 'cmaps.bin'), packedCMaps());
for (const name of ['index.html', 'icon.svg']) pack(join(target, name), readFileSync(join(source, name)));
writeFileSync(
  join(target, 'NOTICES.txt'),
  `${notices(built.flatMap(({ metafile }) => Object.keys(metafile.inputs)))}\n${cmapsLicence()}`,
);

function pack(path, contents) {
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }));
}
