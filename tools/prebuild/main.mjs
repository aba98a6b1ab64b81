// Compiles the addon for another platform than this one, by zig, which brings the headers and libraries of all of them along:
//
//     pip install ziglang                                      zig is in the folder ziglang of Python's packages
//     npm run prebuild:zig -- linux-x64-musl --zig PATH        -> prebuilds/linux-x64/skein.musl.{node,json}
//
// The C++ library is in the file then, and on a Mac the functions of Node.js are found when the addon is
// loaded. check-addon.mjs says whether it can be loaded there at all. The publisher of such an addon has to
// run it on its platform before: tools/prebuild/run-musl.ts does that for musl.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { headersFolder } from '../build-addon/aside.mjs';
import { PLATFORMS, platformName, prebuiltPath } from '../build-addon/platforms.mjs';
import { prebuiltStampFile } from '../build-addon/prebuilt.mjs';
import { portableSourcesHash, stampOf } from '../build-addon/stamp.mjs';
import { checkAddon } from './check-addon.mjs';
import { readGyp } from './read-gyp.mjs';
import { zigFlags } from './zig-flags.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** RHEL 8's C library. */
const OLDEST_GLIBC = '2.28';

/** Zig's names of the platforms, with the oldest system that the addon is to run on; macOS 12. */
const TARGETS = {
  'linux-x64-glibc': `x86_64-linux-gnu.${OLDEST_GLIBC}`,
  'linux-x64-musl': 'x86_64-linux-musl',
  'linux-arm64-glibc': `aarch64-linux-gnu.${OLDEST_GLIBC}`,
  'linux-arm64-musl': 'aarch64-linux-musl',
  'darwin-arm64': 'aarch64-macos.12.0',
};

/** Zig looks for undefined behaviour by default, and ends the process where it finds some. */
const ZIG_FLAGS = ['-fno-sanitize=undefined', '-g0'];

async function main() {
  const { values, positionals } = parseArgs({
    options: { zig: { type: 'string', default: 'zig' }, jobs: { type: 'string' } },
    allowPositionals: true,
  });
  const platform = PLATFORMS.find((one) => platformName(one) === positionals[0]);
  if (platform === undefined || positionals.length !== 1) {
    throw new Error(`name one platform: ${PLATFORMS.map(platformName).join(', ')}.`);
  }
  const headers = headersFolder();
  if (headers === null)
    throw new Error('the headers of Node.js are not next to it (include/node/node_api.h).');
  const jobs = Number(values.jobs ?? availableParallelism());
  if (!(Number.isInteger(jobs) && jobs > 0))
    throw new Error(`--jobs is ${values.jobs}, but a number from 1 on is needed.`);
  const aside = join(root, 'build/prebuild', platformName(platform));
  const target = join(root, 'prebuilds', prebuiltPath(platform));
  const compiler = [values.zig, 'c++', '-target', TARGETS[platformName(platform)]];
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { recursive: true });
  mkdirSync(dirname(target), { recursive: true });
  const steps = readGyp(root, platform).flatMap((one) => compileSteps(compiler, one, aside, headers));
  await runAll(steps, jobs);
  await run({
    command: linkCommand(
      compiler,
      platform,
      steps.map(({ object }) => object),
      target,
    ),
    name: basename(target),
  });
  const asked = checked(target, platform);
  writeFileSync(prebuiltStampFile(target), stampOf(portableSourcesHash(root), target));
  console.log(`${target}: ${asked}`);
}

/** What the addon asks for, in words. One that could not be loaded is deleted. */
function checked(target, platform) {
  const bytes = readFileSync(target);
  try {
    const oldest = platform.libc === 'glibc' ? OLDEST_GLIBC : undefined;
    const { libraries, functionsOfNode } = checkAddon(bytes, platform, oldest);
    const size = (bytes.length / 2 ** 20).toFixed(1);
    return `${size} MiB, asks for ${libraries.join(', ')} and ${functionsOfNode} functions of Node.js`;
  } catch (error) {
    rmSync(target);
    throw new Error(`${target} ${error.message}.`);
  }
}

/** One for each source. */
function compileSteps(compiler, { name, sources, flags, defines, includes }, aside, headers) {
  return sources.map((source, number) => {
    const object = join(aside, `${name}-${number}-${basename(source)}.o`);
    const command = [
      ...[...compiler, ...ZIG_FLAGS, ...zigFlags(flags)],
      ...defines.map((define) => `-D${define}`),
      ...[...includes, join(headers, 'include/node')].map((folder) => `-I${folder}`),
      ...['-c', source, '-o', object],
    ];
    return { name: source, command, object };
  });
}

function linkCommand(compiler, { os }, objects, target) {
  // The name that a library has for others is else the folder in which it was made.
  const ofMac = ['-Wl,-undefined,dynamic_lookup', '-Wl,-install_name,@rpath/skein.node'];
  const system = os === 'darwin' ? ofMac : ['-Wl,--gc-sections', '-pthread'];
  return [...compiler, '-shared', '-s', ...system, ...objects, '-o', target];
}

/** Runs `jobs` steps at a time, the first that fails ends all. */
async function runAll(steps, jobs) {
  const waiting = [...steps];
  let done = 0;
  const work = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      await run(step);
      done++;
      console.log(`${done} of ${steps.length}: ${step.name}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
}

async function run({ command: [program, ...args], name }) {
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`zig ended with ${code ?? signal} at ${name}.`);
}

main().catch((error) => {
  console.error(`prebuild: ${error.message}`);
  process.exit(1);
});
