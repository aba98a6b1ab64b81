import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = temporaryFolder('skein-addon');

const realAddon = join(root, 'build/Release/skein.node');

/**
 * Stands for node-gyp: notes the call, then does what the file `mode` says: build, fail, or continue for
 * ever.
 */
const FAKE_GYP = `
const { appendFileSync, copyFileSync, mkdirSync, readFileSync } = require('node:fs');
appendFileSync(process.env.FAKE_GYP_CALLS, process.pid + ' ' + process.cwd() + '\\n');
mkdirSync('build/Release', { recursive: true });
const mode = readFileSync(process.env.FAKE_GYP_MODE, 'utf8');
if (mode === 'fail') {
  console.error('gyp ERR! stack Error: not found: make');
  process.exit(1);
}
if (mode === 'hang') setInterval(() => {}, 1000);
else copyFileSync(${JSON.stringify(realAddon)}, 'build/Release/skein.node');
`;

const stamp = () =>
  import(join(root, 'tools/build-addon/stamp.mjs')) as Promise<{
    portableSourcesHash(root: string): string;
    stampOf(sources: string, addonFile: string): string;
  }>;

/** The package as npm unpacks it, with little to compile. */
class Unpacked {
  readonly path = mkdtempSync(join(folder, 'package-'));
  readonly #calls = join(this.path, 'calls.log');

  constructor() {
    mkdirSync(join(this.path, 'engine/executors/native'), { recursive: true });
    for (const file of ['package.json', 'binding.gyp']) copyFileSync(join(root, file), join(this.path, file));
    for (const tool of ['tools/build-addon.mjs', 'tools/build-addon']) {
      cpSync(join(root, tool), join(this.path, tool), { recursive: true });
    }
    writeFileSync(join(this.path, 'engine/executors/native/addon.cpp'), '// one\n');
    writeFileSync(this.#calls, '');
  }

  get addon(): string {
    return join(this.path, 'build/Release/skein.node');
  }

  /** Process and folder of each run of node-gyp. */
  get calls(): { pid: number; cwd: string }[] {
    const lines = readFileSync(this.#calls, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => ({ pid: Number.parseInt(line, 10), cwd: line.slice(line.indexOf(' ') + 1) }));
  }

  /** Everything of a build that is not in its place. */
  get leftovers(): string[] {
    return readdirSync(this.path).filter((name) => name.startsWith('.'));
  }

  useFakeGyp(): this {
    for (const [name, file, content] of [
      ['node-gyp', 'bin/node-gyp.js', FAKE_GYP],
      ['node-addon-api', 'package.json', '{"version": "8.0.0"}'],
    ] as const) {
      const path = join(this.path, 'node_modules', name, file);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, content);
    }
    return this;
  }

  /** An addon compiled ahead, of these sources. */
  async addPrebuilt(): Promise<string> {
    symlinkSync(join(root, 'node_modules/node-gyp-build'), join(this.path, 'node_modules/node-gyp-build'));
    const prebuilds = join(this.path, 'prebuilds', `${process.platform}-${process.arch}`);
    mkdirSync(prebuilds, { recursive: true });
    const addon = join(prebuilds, 'skein.glibc.node');
    copyFileSync(realAddon, addon);
    const { portableSourcesHash, stampOf } = await stamp();
    writeFileSync(join(prebuilds, 'skein.glibc.json'), stampOf(portableSourcesHash(this.path), addon));
    return addon;
  }

  useRealModules(): this {
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'));
    return this;
  }

  start(
    mode: 'build' | 'fail' | 'hang',
    args: readonly string[] = [],
    extra: Record<string, string> = {},
  ): ChildProcess {
    const modeFile = join(this.path, 'mode');
    writeFileSync(modeFile, mode);
    const env = { ...process.env, FAKE_GYP_CALLS: this.#calls, FAKE_GYP_MODE: modeFile, ...extra };
    return spawn(process.execPath, [join(this.path, 'tools/build-addon.mjs'), ...args], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  }

  async build(
    mode: 'build' | 'fail' = 'build',
    args: readonly string[] = [],
    extra: Record<string, string> = {},
  ) {
    const child = this.start(mode, args, extra);
    let stderr = '';
    child.stderr!.on('data', (text) => {
      stderr += text;
    });
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, stderr };
  }
}

const COMPILED =
  /^skein: compiling the native addon; [^\n]+\nskein: compiled the native addon in \d+ s [^\n]+\n$/;
const UP_TO_DATE = 'skein: the native addon is up to date\n';

describe('the install script without compiler, make and Python', () => {
  const install = (args: readonly string[]) => {
    const unpacked = new Unpacked().useRealModules();
    const bin = join(unpacked.path, 'bin');
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, 'node'));
    const script = join(unpacked.path, 'tools/build-addon.mjs');
    const env = { PATH: bin, HOME: unpacked.path };
    return { unpacked, ...spawnSync(process.execPath, [script, ...args], { env, encoding: 'utf8' }) };
  };

  it('succeeds, and says what is missing and what to do', () => {
    const { status, stderr, unpacked } = install([]);
    expect(stderr).toMatch(
      /\nskein: the native addon was not built \(.+\)\. [^\n]*C\+\+20 compiler[^\n]*npm rebuild skein[^\n]*\n$/,
    );
    expect(status).toBe(0);
    expect([existsSync(unpacked.addon), unpacked.leftovers]).toEqual([false, []]);
  });

  it('fails where the addon is required', () => {
    const { status, stderr } = install(['--required']);
    expect(stderr).toMatch(/skein: the native addon was not built/);
    expect(status).toBe(1);
  });
});

describe('the install script', () => {
  it('compiles aside, says so, and does it once', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    const first = await unpacked.build();
    expect(first).toEqual({ status: 0, stderr: expect.stringMatching(COMPILED) });
    expect(readFileSync(unpacked.addon).equals(readFileSync(realAddon))).toBe(true);
    expect(unpacked.calls).toHaveLength(1);
    expect(unpacked.calls[0]!.cwd).not.toBe(unpacked.path);
    expect(unpacked.leftovers).toEqual([]);
    expect(await unpacked.build()).toEqual({ status: 0, stderr: UP_TO_DATE });
    expect(unpacked.calls).toHaveLength(1);
  });

  it('compiles again after a change of a source, a setting or a library, for an addon that is cut off or missing, and with --force', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    await unpacked.build();
    const { path, addon } = unpacked;
    const changes: [string, () => void, string[]?][] = [
      ['a source', () => appendFileSync(join(path, 'engine/executors/native/addon.cpp'), '// two\n')],
      ['a setting', () => appendFileSync(join(path, 'binding.gyp'), '\n')],
      [
        'a library of headers',
        () => writeFileSync(join(path, 'node_modules/node-addon-api/package.json'), '{"version": "9.0.0"}'),
      ],
      ['an addon that was cut off', () => truncateSync(addon, 1000)],
      ['a missing addon', () => rmSync(addon)],
      ['--force', () => {}, ['--force']],
    ];
    for (const [what, change, args = []] of changes) {
      change();
      expect((await unpacked.build('build', args)).stderr, what).toMatch(COMPILED);
    }
    expect(await unpacked.build()).toEqual({ status: 0, stderr: UP_TO_DATE });
  });

  it('compiles again an addon of the right sources that does not load', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    await unpacked.build();
    const stampFile = join(unpacked.path, 'build/Release/skein.json');
    const { sources } = JSON.parse(readFileSync(stampFile, 'utf8')) as { sources: string };
    writeFileSync(unpacked.addon, 'made for another machine');
    const { stampOf } = await stamp();
    writeFileSync(stampFile, stampOf(sources, unpacked.addon));
    expect((await unpacked.build()).stderr).toMatch(COMPILED);
  });

  it('that fails to compile leaves the addon that was there', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    await unpacked.build();
    appendFileSync(join(unpacked.path, 'engine/executors/native/addon.cpp'), '// two\n');
    const failed = await unpacked.build('fail');
    expect(failed.status).toBe(0);
    expect(failed.stderr).toMatch(/\nskein: the native addon was not built \(.*not found: make\)/);
    expect([existsSync(unpacked.addon), unpacked.leftovers]).toEqual([true, []]);
    expect((await unpacked.build('fail', ['--required'])).status).toBe(1);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
    'that %s interrupts leaves the addon that was there, and nothing else in the end',
    async (signal) => {
      const unpacked = new Unpacked().useFakeGyp();
      await unpacked.build();
      appendFileSync(join(unpacked.path, 'engine/executors/native/addon.cpp'), '// two\n');
      const child = unpacked.start('hang');
      const ended = once(child, 'exit');
      await expect.poll(() => unpacked.calls.length).toBe(2);
      child.kill(signal);
      const [code] = (await ended) as [number | null];
      expect(code).toBe({ SIGINT: 130, SIGTERM: 143, SIGKILL: null }[signal]);
      expect(existsSync(unpacked.addon)).toBe(true);
      if (signal !== 'SIGKILL') expect(unpacked.leftovers).toEqual([]);
      else process.kill(unpacked.calls[1]!.pid, 'SIGKILL'); // no process was left to end it
      expect((await unpacked.build()).stderr).toMatch(COMPILED);
      expect(unpacked.leftovers).toEqual([]);
    },
  );
});

describe('an addon that was compiled ahead', () => {
  it('is used where it fits, and nothing is compiled', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    await unpacked.addPrebuilt();
    const { status, stderr } = await unpacked.build('fail');
    const path = `prebuilds/${process.platform}-${process.arch}/skein.glibc.node`;
    expect([status, stderr]).toEqual([0, `skein: the prebuilt addon fits (${path}); nothing is compiled\n`]);
    expect([unpacked.calls, existsSync(unpacked.addon)]).toEqual([[], false]);
  });

  it.each<[string, (unpacked: Unpacked, prebuilt: string) => void, string[], Record<string, string>, RegExp]>(
    [
      [
        'other sources',
        ({ path }) => appendFileSync(join(path, 'binding.gyp'), '\n'),
        [],
        {},
        /was made from other sources\n/,
      ],
      [
        'no hashes',
        (_, prebuilt) => rmSync(prebuilt.replace('.node', '.json')),
        [],
        {},
        /was made from other sources\n/,
      ],
      [
        'a file that was cut off',
        (_, prebuilt) => truncateSync(prebuilt, 1000),
        [],
        {},
        /does not load here: \S/,
      ],
      ['another C library', () => {}, [], { LIBC: 'musl' }, /^skein: compiling/],
      ['another architecture', () => {}, [], { npm_config_arch: 'riscv64' }, /^skein: compiling/],
      ['--build-from-source', () => {}, [], { npm_config_build_from_source: 'true' }, /^skein: compiling/],
      [
        '--build-from-source=skein',
        () => {},
        [],
        { npm_config_build_from_source: 'skein' },
        /^skein: compiling/,
      ],
      ['npm run build:native', () => {}, ['--required'], {}, /^skein: compiling/],
    ],
  )('gives way to compiling with %s', async (_, change, args, env, said) => {
    const unpacked = new Unpacked().useFakeGyp();
    change(unpacked, await unpacked.addPrebuilt());
    const { status, stderr } = await unpacked.build('build', args, env);
    expect(stderr).toMatch(said);
    expect(stderr).toMatch(/skein: compiled the native addon in /);
    expect([status, unpacked.calls.length]).toEqual([0, 1]);
  });

  it('takes the place of one in build/Release that is not of these sources', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    mkdirSync(join(unpacked.path, 'build/Release'), { recursive: true });
    writeFileSync(unpacked.addon, 'made for another machine');
    await unpacked.addPrebuilt();
    expect((await unpacked.build('fail')).stderr).toMatch(/^skein: the prebuilt addon fits /);
    expect([unpacked.calls, existsSync(unpacked.addon)]).toEqual([[], false]);
  });

  it('of another platform, which npm was told to install, is told, and nothing is compiled', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    const name = '@skein/native-linux-riscv64-glibc';
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const optionalDependencies = {
      [name]: manifest.version,
      '@skein/native-linux-x64-glibc': manifest.version,
    };
    writeFileSync(join(unpacked.path, 'package.json'), JSON.stringify({ ...manifest, optionalDependencies }));
    const missing = await unpacked.build('fail');
    expect(missing.stderr).toContain(
      `"npm install @skein/native-linux-x64-glibc@${manifest.version}" does, and nothing has to be compiled`,
    );
    const installed = join(unpacked.path, 'node_modules', name);
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, 'skein.node'), '');
    writeFileSync(join(installed, 'package.json'), '{}');
    const { status, stderr } = await unpacked.build('fail');
    const here = `${process.platform}-${process.arch}`;
    expect([status, stderr]).toEqual([
      0,
      `skein: no prebuilt addon is used: npm has installed ${name}, for another platform than ${here} (--os, --cpu or --libc)\n`,
    ]);
    expect(unpacked.calls).toHaveLength(1);
  });

  it('is made by npm run prebuildify, and is then used', async () => {
    const unpacked = new Unpacked().useFakeGyp();
    for (const name of readdirSync(join(root, 'node_modules'))) {
      const link = join(unpacked.path, 'node_modules', name);
      if (!existsSync(link)) symlinkSync(join(root, 'node_modules', name), link);
    }
    copyFileSync(join(root, 'tools/prebuildify.mjs'), join(unpacked.path, 'tools/prebuildify.mjs'));
    const gyp = join(unpacked.path, 'node-gyp');
    const script = join(unpacked.path, 'node_modules/node-gyp/bin/node-gyp.js');
    writeFileSync(gyp, `#!/bin/sh\nexec '${process.execPath}' '${script}'\n`, { mode: 0o755 });
    const mode = join(unpacked.path, 'mode');
    writeFileSync(mode, 'build');
    const env = {
      ...process.env,
      PREBUILD_NODE_GYP: gyp,
      FAKE_GYP_CALLS: join(unpacked.path, 'calls.log'),
      FAKE_GYP_MODE: mode,
    };
    const made = spawnSync(process.execPath, [join(unpacked.path, 'tools/prebuildify.mjs')], {
      env,
      encoding: 'utf8',
    });
    expect(made.stderr).toMatch(/^skein: prebuilt \S+\/skein\.glibc\.node\n$/);
    expect([made.status, unpacked.leftovers, unpacked.calls.length]).toEqual([0, [], 1]);
    expect((await unpacked.build('fail')).stderr).toMatch(/^skein: the prebuilt addon fits/);
  });
});
