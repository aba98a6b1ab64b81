import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { folder, root } from './emulated-machine.js';

/**
 * Modules that look for files next to themselves find them where they were written, not where the bundle
 * lies.
 */
const OWN_ADDRESS: Plugin = {
  name: 'own-address',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (path.includes('/node_modules/')) return undefined;
      const contents = readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      );
      return { contents, loader: 'ts' };
    });
  },
};

/** The compiled package under its own name, as vitest.config.ts has it: its workers are files of dist/. */
const COMPILED_PACKAGE: Plugin = {
  name: 'compiled-package',
  setup({ onResolve }) {
    onResolve({ filter: /^skein(\/loadgen)?$/ }, ({ path }) => {
      const file = path === 'skein' ? 'dist/src/index.js' : 'dist/loadgen/index.js';
      return { path: pathToFileURL(join(root, file)).href, external: true };
    });
  },
};

/**
 * Bundles test files for a Node.js that reads no TypeScript and has no Vite: their describe, it and expect are those of Vitest's own
 * runner, started by run-tests.ts. Returns the script to start, and the bundles' paths in the order of the files.
 */
export async function bundleTests(files: readonly string[]): Promise<{ script: string; tests: string[] }> {
  const outdir = join(folder, 'tests');
  await build({
    entryPoints: [join(root, 'tools/arm/run-tests.ts'), ...files.map((file) => join(root, file))],
    outdir,
    outbase: root,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    alias: { vitest: join(root, 'tools/arm/vitest.ts') },
    packages: 'external',
    plugins: [COMPILED_PACKAGE, OWN_ADDRESS],
    logLevel: 'warning',
  });
  const bundled = (file: string) =>
    join(outdir, `${relative(root, join(root, file)).replace(/\.ts$/, '')}.mjs`);
  return { script: bundled('tools/arm/run-tests.ts'), tests: files.map(bundled) };
}
