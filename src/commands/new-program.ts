import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { packageRoot } from '../../base/package-info.js';
import { writeProblem } from '../../base/system-problem.js';
import { UsageError } from '../errors/user-errors.js';

/** Programs that can be begun with: folders of examples/programs. */
const PROGRAMS = ['chat', 'server', 'rag'];

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/** skein new WHAT DIR: writes a program. @throws UsageError where there is no such program, or its folder cannot be written or has files */
export function newProgram(what: string, folder: string): void {
  if (!PROGRAMS.includes(what)) {
    throw new UsageError(`There is no program '${what}' to begin with; there are: ${PROGRAMS.join(', ')}.`);
  }
  const target = resolve(folder);
  const root = packageRoot();
  try {
    mkdirSync(target, { recursive: true });
    const [found] = readdirSync(target);
    if (found !== undefined)
      throw new UsageError(`${folder} is not empty: it has ${found}. Name a new folder, or an empty one.`);
    cpSync(join(root, 'examples/programs', what), target, { recursive: true });
    write(target, 'package.json', manifestOf(basename(target), root));
    write(target, 'tsconfig.json', COMPILING);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${folder} cannot be written: ${writeProblem(error)}`);
  }
  process.stdout.write(`${folder} has a program. Now: cd ${folder} && npm install && npm start\n`);
}

function write(folder: string, name: string, value: object): void {
  writeFileSync(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
}

const COMPILING = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  },
};

/** The program's manifest: it takes the versions that Skein itself is built with, and a checkout by its path. */
function manifestOf(name: string, root: string): object {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const isInstalled = /[\\/]node_modules[\\/]/.test(root);
  const { tsx, typescript, '@types/node': node } = own.devDependencies;
  return {
    name:
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9-]+/g, '-')
        .replaceAll(/^-+|-+$/g, '') || 'program',
    private: true,
    type: 'module',
    scripts: { start: 'tsx main.ts', check: 'tsc' },
    dependencies: {
      skein: isInstalled ? `^${own.version}` : `file:${root}`,
      zod: own.dependencies.zod,
    },
    devDependencies: { '@types/node': node, tsx, typescript },
  };
}
