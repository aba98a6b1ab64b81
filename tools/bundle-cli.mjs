// Bundles the compiled command line into dist/bin, so that a start reads a few files instead of some four hundred:
//
//   dist/bin/skein.js               looks at the version of Node.js, and goes on with
//   dist/bin/cli.js                 what every command needs
//   dist/bin/<part>-<hash>.js       what one command needs, or what a server needs once its engine is loading
//   dist/bin/generation-worker.js   the engine's thread, and so on: each file that a Worker is started with, by the library too
//   dist/bin/NOTICES.txt            the licences of the libraries within
//   dist/swagger-ui/                the files of the page at /docs
//   dist/report-page/               the files that a report of skein bench has in it
//
// Run after tsc: its input is .dist-next, which becomes dist when all is built. The library that programs import stays as tsc wrote it,
// except for its workers, which import their bundles: a thread that reads a hundred files takes three times as long to start.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { notices } from './licence-notices.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const target = join(root, '.dist-next/bin');

/** Libraries in CommonJS ask for Node's modules by require, which a module of its own does not have. */
const REQUIRE =
  "import { createRequire as makeRequire } from 'node:module';\nconst require = makeRequire(import.meta.url);";

/** Large, and loaded only where a request needs it: these stay where npm has put them. */
const LOADED_BY_NEED = ['node-gyp-build', 'yaml'];

/** The library of the Model Context Protocol would bring a compiler of JSON schemas: those of strangers are not compiled here. */
const withoutSchemaCompiler = {
  name: 'without-schema-compiler',
  setup({ onLoad }) {
    onLoad({ filter: /modelcontextprotocol.sdk.dist.esm.validation.ajv-provider\.js$/ }, () => ({
      contents: `export class AjvJsonSchemaValidator {
  getValidator() {
    throw new Error('Schemas of the Model Context Protocol are not compiled here.');
  }
}`,
    }));
  },
};

const commandLine = await bundle(
  { cli: '.dist-next/src/cli.js' },
  { splitting: true, plugins: [withoutSchemaCompiler] },
);
copyFileSync(join(root, 'src/bin.js'), join(target, 'skein.js'));
chmodSync(join(target, 'skein.js'), 0o755);
const workers = await bundleWorkers(commandLine);
writeFileSync(join(target, 'NOTICES.txt'), notices([...commandLine, ...workers]));

copySwaggerUi();
copyReportPage();

/** A report is one page that holds its library (uPlot), style and script. */
function copyReportPage() {
  const uplot = join(root, 'node_modules/uplot');
  const folder = join(root, '.dist-next/report-page');
  mkdirSync(folder, { recursive: true });
  for (const file of ['uPlot.iife.min.js', 'uPlot.min.css']) {
    copyFileSync(join(uplot, 'dist', file), join(folder, file));
  }
  copyFileSync(join(uplot, 'LICENSE'), join(folder, 'uPlot-LICENSE'));
  for (const file of ['report.js', 'report.css']) {
    copyFileSync(join(root, 'loadgen/report/page', file), join(folder, file));
  }
}

/** Two files are all that a page needs of Swagger UI, compressed as browsers take them, and its licences. */
function copySwaggerUi() {
  const source = join(root, 'node_modules/swagger-ui-dist');
  const folder = join(root, '.dist-next/swagger-ui');
  mkdirSync(folder, { recursive: true });
  for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
    writeFileSync(join(folder, `${file}.gz`), gzipSync(readFileSync(join(source, file)), { level: 9 }));
  }
  for (const file of ['swagger-ui-bundle.js.LICENSE.txt', 'LICENSE', 'NOTICE']) {
    copyFileSync(join(source, file), join(folder, file));
  }
}

/**
 * Bundles the workers that these files start, and those that they start in turn, and puts an import of its bundle in the place of each;
 * returns the files that went into them.
 */
async function bundleWorkers(files) {
  const bundled = new Map();
  const all = [];
  for (let found = files; found.length > 0; ) {
    const named = Object.entries(workerFiles(found)).filter(([name]) => !bundled.has(name));
    for (const [name, file] of named) bundled.set(name, file);
    found = named.length === 0 ? [] : await bundle(Object.fromEntries(named));
    all.push(...found);
  }
  // A bundle may take in the file of another worker, so none is replaced before all are made.
  for (const [name, file] of bundled) {
    const path = relative(dirname(join(root, file)), join(target, `${name}.js`)).replaceAll('\\', '/');
    writeFileSync(join(root, file), `export * from '${path}';\n`);
  }
  return all;
}

/** Writes the bundles of these files, each under its name; returns the files that went into them. */
async function bundle(entryPoints, options = {}) {
  const { metafile } = await build({
    ...options,
    absWorkingDir: root,
    entryPoints,
    outdir: target,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: { js: REQUIRE },
    external: LOADED_BY_NEED,
    // Else ws asks for an addon that is not in the bundle.
    define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    // Names stay: they are read in stacks.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  return Object.keys(metafile.inputs);
}

/** The files that these name as those of workers, new URL('./NAME.js', import.meta.url), by their names. */
function workerFiles(files) {
  const found = files.flatMap((file) => {
    const code = file.startsWith('.dist-next/') ? readFileSync(join(root, file), 'utf8') : '';
    const names = Array.from(
      code.matchAll(/new URL\('\.\/([\w-]+)\.js', import\.meta\.url\)/g),
      (match) => match[1],
    );
    return names.map((name) => [name, join(dirname(file), `${name}.js`)]);
  });
  return Object.fromEntries(found);
}
