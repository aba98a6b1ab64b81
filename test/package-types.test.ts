import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { beforeAll, describe, expect, it } from 'vitest';
import { repository } from './support/documents.js';
import { temporaryFolder } from './support/fresh-folders.js';

// The package is packed and unpacked as npm does it, and a TypeScript program imports it.
const folder = temporaryFolder('skein-types');
const unpacked = join(folder, 'node_modules/skein');
const manifest = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
let tarball: string;

beforeAll(() => {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  const output = execFileSync('npm', args, {
    cwd: repository,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  tarball = join(folder, output.trim().split('\n').at(-1)!);
  mkdirSync(unpacked, { recursive: true });
  execFileSync('tar', ['xzf', tarball, '-C', unpacked, '--strip-components=1']);
  for (const name of [...Object.keys(manifest.dependencies), '@types']) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(repository, 'node_modules', name), link);
  }
});

const nodeRun = async (...args: string[]) => {
  const { stdout, code = 0 } = await promisify(execFile)(process.execPath, args, { cwd: folder }).then(
    (result) => ({ ...result, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  );
  return { stdout, code };
};

/** A program that uses both entry points, written so that a type that became `any` is an error. */
const PROGRAM = `
import { GptManager, type GenerateOptions, Skein } from 'skein';
import { runBenchmark } from 'skein/loadgen';
type NotAny<T> = 0 extends 1 & T ? never : T;
const options: NotAny<GenerateOptions> = { prompt: 'a', signal: AbortSignal.timeout(5) };
export const text: Promise<string> = Skein.load({ model: 'm' }).then(async (skein) => (await skein.complete(options)).text);
export const manager: NotAny<typeof GptManager> = GptManager;
export const bench: NotAny<typeof runBenchmark> = runBenchmark;
// @ts-expect-error An unknown option.
export const wrong: GenerateOptions = { promt: 'a' };
`;

describe('the types of the package', () => {
  it('are clean for publint', async () => {
    const { messages } = await publint({ pkgDir: unpacked, strict: true, pack: false });
    const { default: pkg } = (await import(join(unpacked, 'package.json'), { with: { type: 'json' } })) as {
      default: Record<string, unknown>;
    };
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it('are clean for arethetypeswrong, for a package that is ESM only', async () => {
    const attw = join(repository, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    const { stdout, code } = await nodeRun(attw, tarball, '--profile', 'esm-only', '--format', 'json');
    const report = JSON.parse(stdout) as { analysis: { entrypoints: object; types: unknown } };
    expect(Object.keys(report.analysis.entrypoints)).toEqual([
      '.',
      './ai-sdk',
      './langchain',
      './llamaindex',
      './loadgen',
      './package.json',
    ]);
    expect([code, report.analysis.types]).toEqual([0, { kind: 'included' }]);
  });

  it('compile under the strictest options, without skipLibCheck, with node16 and bundler resolution, TypeScript 6 and 7', async () => {
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    writeFileSync(join(folder, 'app.ts'), PROGRAM);
    const [typescript6, typescript7] = ['node_modules/typescript/bin/tsc', 'tools/tsc.mjs'].map((path) =>
      join(repository, path),
    );
    const strict = {
      strict: true,
      target: 'es2023',
      lib: ['es2023'], // a browser's would take as long to check as all the rest
      types: ['node'],
      noEmit: true,
      exactOptionalPropertyTypes: true,
    };
    const compiled = async (tsc: string, module: object, name: string) => {
      const path = join(folder, name);
      const compilerOptions = { ...strict, ...module, skipLibCheck: false };
      writeFileSync(path, JSON.stringify({ compilerOptions, files: ['app.ts'] }));
      return (await nodeRun(tsc, '-p', path)).stdout;
    };
    expect(
      await Promise.all([
        compiled(typescript6!, { module: 'node16' }, 'tsconfig-node16.json'),
        compiled(typescript7!, { module: 'esnext', moduleResolution: 'bundler' }, 'tsconfig-bundler.json'),
      ]),
    ).toEqual(['', '']);
  });
});
