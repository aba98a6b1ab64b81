import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { relativeLinks } from './support/documents.js';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Packed {
  files: { path: string; size: number }[];
}

/** The files that `npm pack` would put into the package. */
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    // The compiled code must be there, and nothing else matters to the list.
    env: { ...process.env, npm_config_loglevel: 'silent' },
  }),
) as [Packed];
// Addons that were compiled ahead are there on a machine that has made some.
const files = packed.files.filter(({ path }) => !path.startsWith('prebuilds/'));
const unpackedSize = files.reduce((sum, { size }) => sum + size, 0);
const paths = new Set(files.map((file) => file.path));

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: Record<string, string>;
  exports: Record<string, string | Record<string, string>>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  scripts: Record<string, string>;
};

const sourceOf = (path: string) => readFileSync(join(root, path), 'utf8');

/** Modules that a file of the package imports, statically or not. */
function imports(path: string): string[] {
  const pattern = /(?:\bfrom\s+|\bimport\s*\(?\s*)'([^'\n]+)'/g;
  return Array.from(sourceOf(path).matchAll(pattern), (match) => match[1]!);
}

describe('the package that npm pack makes', () => {
  it('has what its manifest names, the licence and the documents', () => {
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    for (const target of [...targets, ...Object.values(manifest.bin)]) {
      expect(paths).toContain(posix.normalize(target));
    }
    for (const name of ['LICENSE', 'README.md', 'ARCHITECTURE.md', 'BENCHMARKS.md', 'CHANGELOG.md']) {
      expect(paths).toContain(name);
    }
  });

  it('has what its documents link to', () => {
    const documents = [...paths].filter((path) => path.endsWith('.md'));
    expect(documents.length).toBeGreaterThan(15);
    const targets = documents.flatMap(relativeLinks).map(({ from, target }) => ({
      from,
      file: posix.join(posix.dirname(from), target.split('#', 1)[0] || posix.basename(from)),
    }));
    const inPackage = (file: string) => paths.has(file) || [...paths].some((path) => path.startsWith(file));
    // Pictures and the laboratory are for who reads in a browser; they would be most of the package's documents.
    const isOutside = (file: string) => /^docs\/(images|lab)\//.test(file);
    expect(targets.filter(({ file }) => !isOutside(file) && !inPackage(file))).toEqual([]);
    expect([...paths].filter(isOutside)).toEqual([]);
  });

  it('has everything that its code and its declarations import', () => {
    const code = [...paths].filter(
      (path) => /\.(js|mjs|d\.ts)$/.test(path) && !/^(dist\/bin|examples)\//.test(path),
    );
    expect(code.length).toBeGreaterThan(200);
    for (const path of code) {
      for (const name of imports(path)) {
        if (name.startsWith('.')) {
          const target = posix.join(posix.dirname(path), name);
          const found = path.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target;
          expect(paths, `${path} imports ${name}`).toContain(found);
        } else if (!name.startsWith('node:')) {
          const dependency = name.startsWith('@') ? name.split('/', 2).join('/') : name.split('/', 1)[0]!;
          // Of a library that it is made for, the program has its own copy.
          const given = { ...manifest.dependencies, ...manifest.peerDependencies };
          expect(given, `${path} imports ${name}`).toHaveProperty([dependency]);
        }
      }
    }
  });

  it('has a bundled command line, with its workers, that needs few libraries', () => {
    const bundle = [...paths].filter((path) => /^dist\/bin\/.*\.js$/.test(path));
    const named = bundle.flatMap((path) =>
      Array.from(
        sourceOf(path).matchAll(/new URL\("\.\/([^"]+)",\s*import\.meta\.url\)/g),
        (match) => match[1]!,
      ),
    );
    expect(named).toEqual(expect.arrayContaining(['generation-worker.js', 'tokenizer-worker.js']));
    for (const name of named) expect(paths).toContain(`dist/bin/${name}`);
    const { metafile } = buildSync({
      entryPoints: bundle,
      absWorkingDir: root,
      outdir: 'unwritten',
      bundle: true,
      packages: 'external',
      format: 'esm',
      platform: 'node',
      write: false,
      metafile: true,
      logLevel: 'silent',
    });
    expect(Object.keys(metafile.inputs).sort()).toEqual(bundle.sort());
    for (const [path, { imports }] of Object.entries(metafile.inputs)) {
      const required = Array.from(sourceOf(path).matchAll(/\brequire\("([^"\n]+)"\)/g), (match) => match[1]!);
      const outside = imports.filter(({ external }) => external).map((found) => found.path);
      for (const name of [...outside, ...required]) {
        expect(isBuiltin(name), `${path} imports ${name}`).toBe(true);
      }
    }
    expect(paths).toContain('dist/bin/NOTICES.txt');
    const notices = sourceOf('dist/bin/NOTICES.txt');
    for (const name of ['zod', 'hono', 'commander', 'pino', 'prom-client']) {
      expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n\\n`, 'm'));
    }
  });

  it('has what the wasm executor computes with, and what it calls of large packages, with the licences', () => {
    const folder = 'dist/engine/executors/wasm';
    for (const name of [
      'kernels.wasm',
      'tfjs-backend-wasm.cjs',
      'tfjs-backend-wasm-simd.wasm',
      'NOTICES.txt',
    ]) {
      expect(paths).toContain(`${folder}/${name}`);
    }
    expect(sourceOf(`${folder}/NOTICES.txt`)).toMatch(/^@tensorflow\/tfjs-backend-wasm 4\.22\.\d+\n/);
    const bundled = ['@huggingface/hub', '@msgpack/msgpack', 'csv-parse', 'hdr-histogram-js'];
    const notices = sourceOf('dist/NOTICES.txt');
    for (const name of bundled) expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n\\n`, 'm'));
    // Some 66 and 20 MB, of which a megabyte is used.
    expect(Object.keys(manifest.dependencies)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(`^(@tensorflow/.*|${bundled.join('|')})$`)]),
    );
  });

  it('has the demo model with its card', () => {
    for (const name of [
      'model.safetensors',
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'README.md',
    ]) {
      expect(paths).toContain(`models/demo/gosling/${name}`);
    }
    const demo = files.filter(({ path }) => path.startsWith('models/demo/'));
    expect(demo.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(10e6);
  });

  it('has the page of its API, compressed, with the licence', () => {
    for (const name of ['swagger-ui-bundle.js.gz', 'swagger-ui.css.gz', 'LICENSE', 'NOTICE']) {
      expect(paths).toContain(`dist/swagger-ui/${name}`);
    }
  });

  it('has all that its install script needs to compile the addon', () => {
    const native = readdirSync(join(root, 'engine/executors/native'), { recursive: true, encoding: 'utf8' });
    const sources = native
      .filter((name) => /\.(cpp|h)$/.test(name))
      .map((name) => `engine/executors/native/${name}`);
    expect(sources.length).toBeGreaterThan(40);
    const [, script] = manifest.scripts.install!.split(' ');
    const forTests = sources.filter((path) => /\/kernels\/(emulated|simd_emulated_)/.test(path));
    expect(forTests.length).toBeGreaterThan(3);
    for (const path of forTests) expect(paths).not.toContain(path);
    const compiled = sources.filter((path) => !forTests.includes(path));
    for (const path of [...compiled, 'binding.gyp', script!]) expect(paths).toContain(path);
  });

  it('takes in addons that were compiled ahead, and what looks for them', () => {
    const { files: included } = JSON.parse(sourceOf('package.json')) as { files: string[] };
    expect(included).toContain('prebuilds');
    expect(paths).toContain('tools/build-addon/prebuilt.mjs');
  });

  it('has no tests, no sources in TypeScript, no maps of them, and nothing big', () => {
    const unwanted =
      /(^|\/)(test|tests|fixtures|goldens|shared|node_modules|build|fake)\/|\.test\.|\.map$|(?<!\.d)\.ts$/;
    const isExample = (path: string) => path.startsWith('examples/');
    expect([...paths].filter((path) => unwanted.test(path) && !isExample(path))).toEqual([]);
    const most = (path: string) => {
      if (path.startsWith('models/demo/')) return 7_000_000;
      const isBundle =
        /^dist\/(bin|swagger-ui)\/|^dist\/dashboard\/(pdf-worker\.js|cmaps\.bin)\.gz$|^dist\/loadgen\/metrics\/latency-histogram\.js$|\.wasm$/.test(
          path,
        );
      // The largest is the worker's, which has the readers of all families, since a GGUF may be computed with as it lies.
      return isBundle ? 1_200_000 : 100_000;
    };
    expect(files.filter(({ path, size }) => size > most(path))).toEqual([]);
    // A quarter of it is the demo model.
    expect(unpackedSize).toBeLessThan(32.2e6);
  });
});
