import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Below the checkout, so that what stays outside of a bundle is found in its node_modules. */
const BUNDLES = join(ROOT, 'build/test-bundles');

/** Leaves each module its own address, by which it finds the files next to it. */
const ownAddresses: Plugin = {
  name: 'own-addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.m?js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: 'js',
    }));
  },
};

/** Libraries in CommonJS ask for Node's modules by require, which a module of its own does not have. */
const REQUIRE =
  "import { createRequire as makeRequire } from 'node:module';\nconst require = makeRequire(import.meta.url);";

async function bundle(script: URL): Promise<string> {
  mkdirSync(BUNDLES, { recursive: true });
  const outdir = mkdtempSync(join(BUNDLES, `${basename(script.pathname, '.mjs')}-`));
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }));
  await build({
    entryPoints: [fileURLToPath(script)],
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: { js: REQUIRE },
    // An addon for ws, and what loads the native addon and finds it by its own place.
    external: ['bufferutil', 'utf-8-validate', 'node-gyp-build', 'yaml'],
    plugins: [ownAddresses],
    logLevel: 'warning',
  });
  return join(outdir, basename(script.pathname).replace(/\.mjs$/, '.js'));
}

const bundles = new Map<string, Promise<string>>();

/**
 * The path of a script with the compiled modules that it imports in a few files: a process that reads six hundred of them takes twice
 * as long to start. It is made once in a process of the tests.
 */
export function bundledChild(script: URL): Promise<string> {
  const made = bundles.get(script.href) ?? bundle(script);
  bundles.set(script.href, made);
  return made;
}
